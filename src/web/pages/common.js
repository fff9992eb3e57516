import { hedged } from './hedged.js';

/** @import { LiveStream, StreamList } from './answers.ts' */

/** The server's clock minus this browser's in ms, by the fastest answer: wrong by at most half its round trip. */
const clock = { offset: 0, took: Infinity };
/** Each answer lowers the worth of the measurement, so that clocks that drift are followed. */
const CLOCK_AGING = 1.1;
/** The root of the server, which a proxy may have below a path of its own: this file lies at `-/assets/<build>/` below it. */
export const root = new URL('../../../', import.meta.url);
/** A server that has not answered by then is gone. Together with the polling interval, viewers learn of it within 5 s. */
const ANSWER_MS = 2500;
/** Pauses between hedged requests, while there is no answer. */
const PAUSES_MS = [500, 1000];

/** Milliseconds since the epoch by the server's clock. */
export const serverNow = () => Date.now() + clock.offset;

/**
 * @param {number} now
 * @param {number} sent
 * @param {number} received
 */
function noteClock(now, sent, received) {
  clock.took *= CLOCK_AGING;
  const took = received - sent;
  if (took <= clock.took) Object.assign(clock, { took, offset: now - (sent + received) / 2 });
}

/** An element that a script needs is not in the page's HTML. */
class MissingElementError extends Error {}

/**
 * Finds an element of the page's HTML.
 * @template {HTMLElement} T
 * @param {new () => T} kind
 * @param {string} selector
 * @throws {MissingElementError} also where it is of another kind
 */
export function find(kind, selector) {
  const found = document.querySelector(selector);
  if (found instanceof kind) return found;
  throw new MissingElementError(`The page has no ${kind.name} ${selector}`);
}

/**
 * Finds an element by its id.
 * @param {string} id
 * @throws {MissingElementError}
 */
export const byId = (id) => find(HTMLElement, `#${id}`);

/**
 * Makes an element. Strings become text, never markup.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Partial<HTMLElementTagNameMap[T]>} [properties]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/**
 * Fetches a resource that any server of the cluster can answer.
 * @param {URL | string} url
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 * @throws {TypeError} when no server can be reached; TimeoutError when none answers
 */
export function ask(url, options = {}) {
  const late = AbortSignal.timeout(ANSWER_MS);
  /** @type {AbortController[]} */
  const asked = [];
  const askOne = async () => {
    const own = new AbortController();
    asked.push(own);
    const signal = AbortSignal.any([own.signal, late]);
    const response = await fetch(url, { cache: 'no-store', signal, ...options });
    for (const other of asked) if (other !== own) other.abort();
    return response;
  };
  return hedged(askOne, PAUSES_MS);
}

/**
 * Lists the live streams.
 * @param {{ app?: string, stream?: string }} [query] one stream only
 * @returns {Promise<StreamList>}
 * @throws as `ask`; Error when the server does not answer as expected
 */
export async function fetchStreams(query = {}) {
  const sent = Date.now();
  const response = await ask(new URL(`-/streams.json?${new URLSearchParams(query)}`, root));
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const received = Date.now();
  /** @type {StreamList} */
  const list = await response.json();
  noteClock(list.now, sent, received);
  return list;
}

/**
 * Path of the player page: `playerPath('app', 'a b')` is `/app/a%20b`, where the server is at the root of its host.
 * @param {string} app
 * @param {string} stream
 */
export const playerPath = (app, stream) => `${root.pathname}${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;

/** Decoded segments of this page's path below the root. */
export const ownPath = () => location.pathname.slice(root.pathname.length).split('/').map(decodeURIComponent);

/**
 * "8 s", "3 min", "2 h 5 min", "4 d 1 h".
 * @param {number} milliseconds
 */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * Shows addresses by name in a `dl`, each with a button that copies it.
 * @param {HTMLElement} place
 * @param {readonly (readonly [name: string, url: string])[]} rows
 */
export function showAddresses(place, rows) {
  replaceIfChanged(place, rows, () =>
    rows.flatMap(([name, url]) => [element('dt', {}, name), element('dd', {}, copied(url))]),
  );
}

/**
 * "1280×720 · 30 fps · H264 · AAC".
 * @param {Pick<LiveStream, 'video' | 'audio'>} stream
 */
export function media({ video, audio }) {
  /** @type {string[]} */
  const parts = [];
  if (video && video.width > 0) parts.push(`${video.width}×${video.height}`);
  if (video && video.framerate > 0) parts.push(`${Math.round(video.framerate * 100) / 100} fps`);
  if (video) parts.push(video.codec);
  if (audio) parts.push(audio.codecs.map((codec) => (codec === 'OPUS' ? 'Opus' : codec)).join(', '));
  return parts.join(' · ');
}

/**
 * "800 kbit/s", "2.50 Mbit/s".
 * @param {number} rate bit/s
 */
export const bits = (rate) => (rate < 1e6 ? `${Math.round(rate / 1000)} kbit/s` : `${(rate / 1e6).toFixed(2)} Mbit/s`);

/** @param {number} viewers */
export const watching = (viewers) => `${viewers} watching`;

/**
 * Copies a text, also on pages without TLS, which browsers do not give the clipboard.
 * @param {string} text
 * @throws {Error} with a reason for the user
 */
export async function copyText(text) {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  const field = element('textarea', { value: text, className: 'unseen', readOnly: true });
  // an open dialog lets nothing outside of it be selected
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  if (!copied) throw new Error('This browser does not let the page copy: select the text instead');
}

/**
 * An address, which may be broken after its marks, with a button that copies it.
 * @param {string} text
 */
export function copied(text) {
  const parts = text.split(/(?<=[/?&])(?!\/)/).flatMap((part, at) => (at > 0 ? [element('wbr'), part] : [part]));
  return element('span', { className: 'copied' }, element('code', {}, ...parts), new CopyButton(() => text).element);
}

const DONE_MS = 2000;

/** A button that copies a text, and shows for a moment that it did. */
export class CopyButton {
  element;
  /** @type {number | undefined} */
  #reset;

  /**
   * @param {() => string} textOf
   * @param {string} [title]
   */
  constructor(textOf, title = 'Copy') {
    this.element = element('button', { type: 'button', className: 'plain', textContent: title });
    this.element.addEventListener('click', async () => {
      const said = await copyText(textOf()).then(
        () => 'Copied',
        (error) => messageOf(error),
      );
      this.element.textContent = said;
      clearTimeout(this.#reset);
      this.#reset = setTimeout(() => (this.element.textContent = title), DONE_MS);
    });
  }
}

/**
 * Replaces the children of an element only when their content has changed, so that focus and selection in it stay.
 * @template T
 * @param {HTMLElement} place
 * @param {T} content anything that JSON can hold
 * @param {(content: T) => Iterable<Node | string>} make
 */
export function replaceIfChanged(place, content, make) {
  const text = JSON.stringify(content);
  if (place.dataset['shown'] === text) return;
  place.dataset['shown'] = text;
  place.replaceChildren(...make(content));
}

/**
 * Text of an error for the user.
 * @param {unknown} error
 */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
