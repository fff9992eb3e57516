import { chromium, type Browser } from 'playwright-core';
import { PATIENCE_MS } from '../time/until.ts';

const EXECUTABLE = '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--autoplay-policy=no-user-gesture-required',
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
];

/** Of a page, unless a test says otherwise: Chromium draws all of it for each frame of a video, without a GPU. */
const VIEWPORT = { width: 320, height: 180 };

/** Starts Debian's Chromium with a fresh profile, whose pages are small and have a long time-out. Close it when done. */
export async function launchBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: FLAGS, timeout: PATIENCE_MS });
  browser.on('context', (context) => context.setDefaultTimeout(PATIENCE_MS));
  const newPage = browser.newPage.bind(browser);
  browser.newPage = (options) => newPage({ viewport: VIEWPORT, ...options });
  return browser;
}
