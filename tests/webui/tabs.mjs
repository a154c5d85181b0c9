// Tabs as a user has them: one window, in which only the tab in front is visible. Playwright's pages all count as
// visible, because it emulates focus in each of them.
import { page } from './driver.mjs';

// Longer than any wait in a page.
const ANSWER_MS = 60000;

// Sends commands to one tab and to the scripts of its page.
class Tab {
  constructor(window, target, session) {
    this.window = window;
    this.target = target;
    this.session = session;
  }

  send(method, params = {}) {
    return this.window.sendTo(this.session, method, params);
  }

  // Opens an address and returns when its page has begun to arrive.
  async goto(url) {
    const { errorText } = await this.send('Page.navigate', { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
  }

  // Calls a function in the page and returns its result, which is JSON.
  async evaluate(called, argument) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression: `(${called})(${JSON.stringify(argument ?? null)})`,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  // Waits until an element is in the page. Hidden pages have no frames, so this counts no frames.
  async waitFor(selector, timeout) {
    const found = await this.evaluate(
      ([wanted, ms]) =>
        new Promise((resolve) => {
          const end = Date.now() + ms;
          const look = () => {
            const there = document.querySelector(wanted) !== null;
            if (there || Date.now() > end) resolve(there);
            else setTimeout(look, 5);
          };
          look();
        }),
      [selector, timeout],
    );
    if (!found) throw new Error(`${timeout} ms without ${selector}`);
  }

  isVisible() {
    return this.evaluate(() => document.visibilityState === 'visible');
  }

  bringToFront() {
    return this.window.browser.send('Target.activateTarget', { targetId: this.target });
  }

  close() {
    return this.window.browser.send('Target.closeTarget', { targetId: this.target });
  }
}

// The window of the browser's own profile, signed in as the page of the driver is.
export class Window {
  static async open() {
    const window = new Window();
    window.browser = await page.context().browser().newBrowserCDPSession();
    window.sent = 0;
    window.answers = new Map();
    window.browser.on('Target.receivedMessageFromTarget', ({ message }) => window.receive(JSON.parse(message)));
    const cookies = (await page.context().cookies()).map(({ name, value, domain, path, httpOnly, sameSite }) => ({ name, value, domain, path, httpOnly, sameSite }));
    await window.browser.send('Storage.setCookies', { cookies });
    const stored = await page.evaluate(() => ({ ...localStorage }));
    // The profile forgets its cookies when its last tab is closed, so this one stays.
    window.first = await window.openTab();
    await window.first.goto(new URL('/det/', page.url()).href);
    await window.first.evaluate((entries) => Object.assign(localStorage, entries), stored);
    return window;
  }

  // Opens an empty tab in front of the others.
  async openTab() {
    const { targetId } = await this.browser.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.browser.send('Target.attachToTarget', { targetId, flatten: false });
    return new Tab(this, targetId, sessionId);
  }

  close() {
    return this.first.close();
  }

  sendTo(sessionId, method, params) {
    const id = ++this.sent;
    const answer = new Promise((resolve, reject) => this.answers.set(id, { resolve, reject }));
    const refuse = (error) => this.receive({ id, error });
    setTimeout(refuse, ANSWER_MS, new Error(`${method}: no answer for ${ANSWER_MS} ms`)).unref();
    this.browser.send('Target.sendMessageToTarget', { sessionId, message: JSON.stringify({ id, method, params }) }).catch(refuse);
    return answer;
  }

  receive({ id, result, error }) {
    const waiting = this.answers.get(id);
    this.answers.delete(id);
    if (error) waiting?.reject(new Error(error.message));
    else waiting?.resolve(result);
  }
}
