import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { until } from '../time/until.ts';

const file = (specifier: string) => fileURLToPath(import.meta.resolve(specifier));
const HLS_JS = file('hls.js/dist/hls.min.js');
const SCRIPTS = {
  hls: [HLS_JS],
  ovenplayer: [HLS_JS, file('ovenplayer/dist/ovenplayer.js')],
  videojs: [file('video.js/dist/video.min.js')],
  shaka: [file('shaka-player/dist/shaka-player.compiled.js')],
};

export type PlayerName = keyof typeof SCRIPTS;

interface Watched {
  readonly faults: readonly string[];
  readonly notes: readonly string[];
  readonly played: number;
  readonly longestStall: number;
}

/** A page with one of the players that judge LL-HLS. */
export class PlayerPage {
  readonly page: Page;
  readonly #player: PlayerName;

  private constructor(page: Page, player: PlayerName) {
    this.page = page;
    this.#player = player;
  }

  /** @param url of a page that may load what is played */
  static async open(browser: Browser, player: PlayerName, url: string): Promise<PlayerPage> {
    const page = await browser.newPage();
    await page.goto(url);
    for (const path of [...SCRIPTS[player], file('./judges.js')])
      await page.addScriptTag({ content: readFileSync(path, 'utf8') });
    return new PlayerPage(page, player);
  }

  /** @param config of the player, where it is not to be as it comes */
  async play(url: string, config?: object): Promise<void> {
    await this.page.evaluate(
      `play(${JSON.stringify(this.#player)}, ${JSON.stringify(url)}, ${JSON.stringify(config)})`,
    );
  }

  /**
   * Waits until the picture has moved for some seconds from now on.
   * @throws Error with all that the player said, when it does not, or stood still for longer than `mostStall`
   * @param mostStall milliseconds
   */
  async plays(seconds: number, mostStall: number): Promise<void> {
    await this.page.evaluate('watch()');
    let seen: Watched | undefined;
    try {
      await until(`${seconds} s were played`, async () => {
        seen = (await this.page.evaluate('({ faults, notes, played, longestStall })')) as Watched;
        return seen.played >= seconds || seen.faults.length > 0 || seen.longestStall > mostStall;
      });
    } catch (error) {
      throw new Error(this.#tell(seen), { cause: error });
    }
    if (seen === undefined || seen.played < seconds) throw new Error(this.#tell(seen));
  }

  #tell(seen: Watched | undefined): string {
    return `${this.#player} does not play: ${JSON.stringify(seen, undefined, 1)}`;
  }
}
