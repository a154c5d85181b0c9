// Entry point of the UI.
import { render } from 'preact';
import { followAlerts } from './alerts';
import { App } from './router';
import { followSettings } from './settings';
import { findUser, followSession } from './session';
import './styles/main.css';

const root = document.getElementById('app');
if (root) {
  followSettings();
  followSession();
  followAlerts();
  void findUser();
  render(<App />, root);
}
