import { appPath } from './api.js';
import { Poster } from '../poster.js';

const REFRESH_MS = 5000;
/** Pictures that are fetched at a time: a list may have hundreds. */
const MAX_AT_ONCE = 4;

let running = 0;
const waiting = [];

async function inTurn(job) {
  if (running >= MAX_AT_ONCE) await new Promise((resolve) => waiting.push(resolve));
  running++;
  try {
    await job();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

/**
 * The newest picture of a stream, fetched with the token and only while it is on the screen; a drawing where there is
 * none. A row of `/v1/cluster/streams` says which output has one.
 */
export class StreamPicture {
  element;
  #api;
  #poster;
  #canvas = document.createElement('canvas');
  #seen = false;
  #at = -Infinity;
  #row;

  constructor(api, row) {
    this.#api = api;
    this.#poster = new Poster(`${row.app}/${row.stream}`);
    this.element = this.#poster.element;
    new IntersectionObserver(([{ isIntersecting }]) => {
      this.#seen = isIntersecting;
      this.#refresh();
    }).observe(this.element);
  }

  update(row) {
    this.#row = row;
    this.#poster.draw(row.video === undefined);
    this.#refresh();
  }

  #refresh() {
    const { thumbnail } = this.#row ?? {};
    if (thumbnail === undefined) return this.#canvas.remove();
    const now = performance.now();
    if (!this.#seen || document.hidden || now - this.#at < REFRESH_MS) return;
    this.#at = now;
    // a picture that does not come leaves the one before it
    inTurn(() => this.#fetch(thumbnail)).catch(() => undefined);
  }

  async #fetch(output) {
    const path = `${appPath(this.#row)}/outputs/${encodeURIComponent(output)}/thumbnail`;
    const bitmap = await createImageBitmap(await this.#api.file(path));
    Object.assign(this.#canvas, { width: bitmap.width, height: bitmap.height });
    this.#canvas.getContext('2d').drawImage(bitmap, 0, 0);
    bitmap.close();
    if (!this.#canvas.isConnected) this.element.append(this.#canvas);
  }
}
