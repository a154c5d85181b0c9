// Owns the start of the page.
import { render } from 'preact';
import { App } from './router';
import { findUser, followSession } from './session';
import './styles/main.css';

const root = document.getElementById('app');
if (root) {
  followSession();
  void findUser();
  render(<App />, root);
}
