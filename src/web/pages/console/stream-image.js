import { appPath } from './api.js';
import { Poster } from '../poster.js';

/** @import { Api, StreamName } from './api.js' */

const REFRESH_MS = 5000;
/** Thumbnails that are fetched at a time: a list may have hundreds. */
const MAX_AT_ONCE = 4;

let running = 0;
/** @type {(() => void)[]} */
const waiting = [];

/** @param {() => Promise<void>} job */
async function inTurn(job) {
  if (running >= MAX_AT_ONCE) await new Promise((resolve) => waiting.push(() => resolve(undefined)));
  running++;
  try {
    await job();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

/**
 * Part of a row of `/v1/cluster/streams`.
 * @typedef {StreamName & { video?: unknown, thumbnail?: string | undefined }} Row `thumbnail`: output stream that has one
 */

/**
 * The newest thumbnail of a stream, fetched with the token and only while it is on the screen; a drawing where there is none.
 */
export class StreamImage {
  element;
  #api;
  #poster;
  #canvas = document.createElement('canvas');
  #seen = false;
  #at = -Infinity;
  /** @type {Row | undefined} */
  #row;

  /**
   * @param {Api} api
   * @param {StreamName} row
   */
  constructor(api, row) {
    this.#api = api;
    this.#poster = new Poster(`${row.app}/${row.stream}`);
    this.element = this.#poster.element;
    new IntersectionObserver(([change]) => {
      this.#seen = change?.isIntersecting === true;
      this.#refresh();
    }).observe(this.element);
  }

  /** @param {Row} row */
  update(row) {
    this.#row = row;
    this.#poster.draw(row.video === undefined);
    this.#refresh();
  }

  #refresh() {
    const row = this.#row;
    if (row?.thumbnail === undefined) return this.#canvas.remove();
    const now = performance.now();
    if (!this.#seen || document.hidden || now - this.#at < REFRESH_MS) return;
    this.#at = now;
    const path = `${appPath(row)}/outputs/${encodeURIComponent(row.thumbnail)}/thumbnail`;
    // one that does not come leaves the one before it
    inTurn(() => this.#fetch(path)).catch(() => undefined);
  }

  /** @param {string} path */
  async #fetch(path) {
    const bitmap = await createImageBitmap(await this.#api.file(path));
    Object.assign(this.#canvas, { width: bitmap.width, height: bitmap.height });
    this.#canvas.getContext('2d')?.drawImage(bitmap, 0, 0);
    bitmap.close();
    if (!this.#canvas.isConnected) this.element.append(this.#canvas);
  }
}
