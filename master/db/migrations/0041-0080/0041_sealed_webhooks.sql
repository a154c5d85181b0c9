-- URLs of webhooks are secrets: the next start encrypts them, with all other secrets at rest (at_rest.h).
UPDATE cluster SET secrets_key = '';
