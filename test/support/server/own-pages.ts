import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

const MODULES = {
  WhepPlayer: [
    ...['hedged.js', 'ice-servers.js', 'silence.js', 'subtitles.js'],
    ...['whep-subtitles.js', 'whep-session.js', 'whep.js'],
  ],
  WhipSession: ['ice-servers.js', 'whip-session.js'],
};

/** Loads a class of Kiln's own pages into any page, and puts it into `window`. */
export async function addOwn(page: Page, name: keyof typeof MODULES): Promise<void> {
  const read = (file: string): string =>
    readFileSync(new URL(`../../../src/web/pages/${file}`, import.meta.url), 'utf8');
  const modules = MODULES[name].map((file) => read(file).replaceAll(/^import .*$/gm, ''));
  await page.addScriptTag({ type: 'module', content: `${modules.join('')}\nwindow.${name} = ${name};` });
  await page.waitForFunction(`window.${name} !== undefined`);
}
