// Entry point of the UI.
import { render } from 'preact';
import { followAlerts } from './alerts';
import { App } from './router';
import { followSettings } from './settings';
import './start';
import './styles/main.css';
import { firstRowsArrived } from './workbench/firstRows';

// A list that is drawn with its rows needs no second drawing.
const ROWS_MS = 50;

const root = document.getElementById('app');
if (root) {
  followSettings();
  followAlerts();
  void firstRowsArrived(ROWS_MS).then(() => render(<App />, root));
}
