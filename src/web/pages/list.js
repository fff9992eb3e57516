import { age, bits, byId, element, fetchStreams, media, playerPath, serverNow, watching } from './common.js';
import { fetchPlaces, placesGuide } from './places.js';
import { Poster } from './poster.js';

/** @import { LiveStream, StreamList } from './answers.ts' */

const REFRESH_MS = 3000;
const HIDDEN_REFRESH_MS = 15_000;
/** Pause between thumbnails of a card on the screen. */
const THUMBNAIL_MS = 9000;

/** Cards by the path of their player. @type {Map<string, Card>} */
const cards = new Map();
/** Keys of the cards on the screen. */
const onScreen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const key = target instanceof HTMLElement ? (target.dataset['key'] ?? '') : '';
    const card = cards.get(key);
    if (!isIntersecting || card === undefined) onScreen.delete(key);
    else onScreen.add(key);
    card?.refreshThumbnail();
  }
});

/** One card of the list; its parts are changed in place, so a focused link stays focused. */
class Card {
  element;
  #path;
  #poster;
  #detail = element('div', { className: 'detail' });
  #viewers = element('b');
  #rate = element('span');
  #since = element('span', { className: 'badge' });
  /** @type {string | undefined} */
  #thumbnail;
  #refreshedAt = -Infinity;

  /** @param {LiveStream} live */
  constructor({ app, stream }) {
    this.#path = playerPath(app, stream);
    this.#poster = new Poster(`${app}/${stream}`);
    this.#poster.element.append(element('span', { className: 'badge live' }, 'Live'), this.#since);
    const link = element(
      'a',
      { href: this.#path },
      this.#poster.element,
      element(
        'div',
        { className: 'what' },
        element('div', { className: 'name' }, element('small', {}, `${app} / `), stream),
        this.#detail,
        element('div', { className: 'numbers' }, this.#viewers, this.#rate),
      ),
    );
    this.element = element('li', {}, link);
    this.element.dataset['key'] = this.#path;
  }

  /** @param {LiveStream} live */
  update(live) {
    this.#detail.textContent = live.video === undefined ? `Audio only · ${media(live)}` : media(live);
    this.#viewers.textContent = watching(live.viewers);
    this.#rate.textContent = live.bitrate === undefined ? '' : bits(live.bitrate);
    this.#since.textContent = age(serverNow() - live.since);
    this.#poster.draw(live.video === undefined);
    this.#thumbnail = live.thumbnail;
    this.refreshThumbnail();
  }

  refreshThumbnail() {
    if (this.#thumbnail === undefined) return void this.#poster.show(undefined);
    if (document.hidden || !onScreen.has(this.#path)) return;
    const now = performance.now();
    if (now - this.#refreshedAt < THUMBNAIL_MS) return;
    this.#refreshedAt = now;
    void this.#poster.show(`${this.#path}/${this.#thumbnail}?at=${Math.round(now)}`);
  }
}

/** @param {StreamList} list */
function show({ streams, more, restricted }) {
  const gone = new Map(cards);
  for (const live of streams) {
    const key = playerPath(live.app, live.stream);
    gone.delete(key);
    let card = cards.get(key);
    if (card === undefined) {
      card = new Card(live);
      cards.set(key, card);
      byId('streams').append(card.element);
      watcher.observe(card.element);
    }
    card.update(live);
  }
  for (const [key, { element: card }] of gone) {
    watcher.unobserve(card);
    card.remove();
    cards.delete(key);
    onScreen.delete(key);
  }
  const count = streams.length;
  const noun = count === 1 ? 'stream' : 'streams';
  byId('count').textContent = more ? `the first ${count} ${noun}` : count > 0 ? `${count} ${noun}` : '';
  if (restricted) say('Streams are not listed here', 'To watch one, use the link that its publisher gave you.');
  else say('Nothing is live right now', 'New streams appear here by themselves.');
  showEmpty(count === 0, !restricted);
}

/**
 * @param {string} title
 * @param {string} text
 */
function say(title, text) {
  if (byId('empty-title').textContent === title) return;
  byId('empty-title').textContent = title;
  byId('empty-text').textContent = text;
}

/**
 * @param {boolean} isEmpty
 * @param {boolean} invites whether the page explains how to publish
 */
function showEmpty(isEmpty, invites) {
  byId('empty').hidden = !isEmpty;
  byId('guide').hidden = !isEmpty || !invites;
}

async function refresh() {
  try {
    show(await fetchStreams());
  } catch {
    byId('count').textContent = cards.size > 0 ? 'The server cannot be reached: the list may be old' : '';
    say('The server cannot be reached', 'This page tries again by itself.');
    showEmpty(cards.size === 0, false);
  }
}

/** @type {number | undefined} */
let timer;
async function loop() {
  clearTimeout(timer);
  await refresh();
  clearTimeout(timer);
  timer = setTimeout(loop, document.hidden ? HIDDEN_REFRESH_MS : REFRESH_MS);
}

async function invite() {
  const places = await fetchPlaces();
  const fromHere = places.here && places.applications.some(({ whip }) => whip !== undefined);
  byId('go-live').hidden = !fromHere;
  byId('guide').replaceChildren(...placesGuide(places, { fromHere }));
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void loop();
});
void loop();
// the list works without it
invite().catch(() => undefined);
