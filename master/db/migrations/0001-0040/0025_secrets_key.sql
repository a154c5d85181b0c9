-- The key that encrypts all stored secrets; '' while some may be in plain.
ALTER TABLE cluster ADD COLUMN secrets_key text NOT NULL DEFAULT '';
