import { bits, element, serverNow } from './common.js';
import { Poster } from './poster.js';

const STALL_MS = 8000;
/** So soon after a press in the video its sound is the viewer's doing, and so soon after a change of its rate that of the browser. */
const SOON_MS = 1000;
/** So many starts may fail before a viewer is told why: a stream that has just begun is not all there. */
const QUIET_ATTEMPTS = 3;
const RETRY_MS = [500, 500, 500, 1000, 2000, 4000];
/** Viewers who lose their server together do not come back together. */
const spread = (milliseconds) => milliseconds * (0.2 + 0.8 * Math.random());

/** What viewers read while the publisher is away: title, text, and that it will pass. */
export const AWAY = ['Reconnecting', 'The publisher is away and may return.', true];
/** The same while no server answers. */
export const UNREACHABLE = ['The server cannot be reached', 'Trying again', true];

/** One way to play: a picture with its state on top and its figures below. Plays again by itself after a fault. */
export class Panel {
  element;
  #video = element('video', { muted: true, autoplay: true, playsInline: true, controls: true });
  #cover;
  /** What is shown of a stream that has no video. */
  #art;
  #sound = element('button', { className: 'sound', type: 'button', textContent: 'Unmute', hidden: true });
  #figures = {};
  #choices = element('div', { className: 'choices', hidden: true });
  #note = element('p', { className: 'note', hidden: true });
  #makePlayer;
  #troubled;
  #begun;
  #player;
  #target;
  #attempts = 0;
  #retry;
  #shown = false;
  #excuse;
  /** Of the last failure. */
  #reason;
  #startedAt = 0;
  #progressAt = 0;
  #position = 0;
  #still = true;
  #firstPictureMs;
  #frames;
  /** The playback rate of which the video has told, and when. */
  #rate = { value: 1, at: -Infinity };
  #pressedAt = -Infinity;

  /**
   * @param looks `{ mark, name }`: a picture that is shown while nothing plays, and the name of the stream
   * @param makePlayer `(video, { failed, interrupted, changed }) => player` with `start(url, attempt)`, `stats(serverNow)`,
   *   `catchUp()`, `close()`, and `choices` and `choose(name, value)` where the viewer has a choice
   * @param unmuted called when this panel's sound is turned on
   * @param begun called when a picture is shown
   * @param troubled called when the picture stopped: the stream may have ended
   * @param firstPictureMs after so long without a picture the player is started again
   */
  constructor(title, { mark, name }, makePlayer, { unmuted, begun, troubled, firstPictureMs }) {
    this.#makePlayer = makePlayer;
    this.#firstPictureMs = firstPictureMs;
    this.#begun = begun;
    this.#troubled = troubled;
    const picture = element('img', { src: mark, alt: '', className: 'pulse' });
    this.#cover = {
      picture,
      title: element('strong'),
      text: element('span'),
      button: element('button', { type: 'button', textContent: 'Play', hidden: true }),
    };
    this.#cover.element = element('div', { className: 'cover' }, ...Object.values(this.#cover));
    this.#cover.element.role = 'status';
    const figures = element('dl', { className: 'figures' });
    for (const name of ['Latency', 'Resolution', 'Frame rate', 'Bitrate', 'Dropped']) {
      this.#figures[name] = element('dd');
      figures.append(element('div', {}, element('dt', { textContent: name }), this.#figures[name]));
    }
    this.#art = new Poster(name);
    this.#art.draw(true);
    this.#art.element.append(
      element('span', { className: 'badge' }, 'Audio only'),
      element('strong', {}, name.slice(name.indexOf('/') + 1)),
    );
    this.#art.element.hidden = true;
    const screen = element(
      'div',
      { className: 'screen' },
      this.#video,
      this.#art.element,
      this.#sound,
      this.#cover.element,
    );
    this.element = element(
      'section',
      { className: 'panel' },
      element('h2', {}, title),
      screen,
      this.#choices,
      figures,
      this.#note,
    );
    this.#video.ariaLabel = title;
    this.#listen(unmuted);
    this.#clearFigures();
  }

  /** Plays `url` until `stop`. `isAudio`: there is no video. `note` says what the viewer has to know about this way of playing. */
  play(url, { hasSound, isAudio = false, note = '' }) {
    this.stop('Starting', '', true);
    this.#art.element.hidden = !isAudio;
    this.#target = { url, hasSound };
    this.#note.textContent = note;
    this.#note.hidden = note === '';
    this.#attempts = 0;
    this.#reason = undefined;
    this.#shown = false;
    this.#start();
  }

  /** Shows a state instead of a picture. `busy`: it will pass by itself. */
  stop(title, text, busy) {
    this.#cancelRetry();
    this.#target = undefined;
    this.#player?.close();
    this.#player = undefined;
    this.#show(title, text, busy);
    this.#clearFigures();
    this.#note.hidden = true;
    this.#showChoices();
  }

  /** Why nothing plays, where the page knows better than the player: what is shown then. undefined: it does not. */
  set excuse(excuse) {
    const before = this.#excuse;
    this.#excuse = excuse;
    if (excuse === before || this.#target === undefined) return;
    if (!this.#cover.element.hidden && this.#cover.button.hidden) this.#showWaiting();
    if (excuse === undefined && this.#retry !== undefined) this.#startSoon(0);
  }

  /** A picture is shown that moves, or that the viewer has paused. */
  get playing() {
    return this.#player !== undefined && this.#cover.element.hidden && !this.#still;
  }

  mute() {
    this.#video.muted = true;
  }

  /** Called once a second: refreshes the figures and notices a picture that stands still. */
  tick() {
    if (this.#player === undefined) return;
    const now = performance.now();
    const playing = this.#cover.element.hidden;
    this.#still = this.#video.currentTime === this.#position && !(this.#video.paused && playing);
    if (!this.#still) {
      this.#position = this.#video.currentTime;
      this.#progressAt = now;
    }
    if (playing) {
      void this.#refresh(this.#player);
      if (!this.#video.paused) this.#player.catchUp();
      const stalled = !document.hidden && now - this.#progressAt > STALL_MS;
      if (stalled) this.#failed({ reason: 'The video has stopped', final: false });
    } else if (this.#cover.button.hidden && now - this.#startedAt > this.#firstPictureMs) {
      this.#failed({ reason: 'No video arrived', final: false });
    }
  }

  #listen(unmuted) {
    const video = this.#video;
    video.addEventListener('playing', () => {
      if (this.#player === undefined) return;
      this.#cover.element.hidden = true;
      this.#progressAt = performance.now();
      this.#still = false;
      this.#attempts = 0;
      this.#shown = true;
      this.#showSound();
      this.#begun();
    });
    video.addEventListener('play', () => this.#player?.catchUp());
    video.addEventListener('loadedmetadata', () => this.#begin());
    for (const press of ['pointerdown', 'pointerup', 'keydown']) {
      video.addEventListener(press, () => (this.#pressedAt = performance.now()));
    }
    video.addEventListener('ratechange', () => (this.#rate = { value: video.playbackRate, at: performance.now() }));
    video.addEventListener('volumechange', () => {
      if (this.#isUnmutedByRate()) {
        video.muted = true;
        this.#begin();
      }
      this.#showSound();
      if (!video.muted) unmuted(this);
    });
    this.#sound.addEventListener('click', () => {
      this.#pressedAt = performance.now();
      video.muted = false;
      video.focus();
    });
    this.#cover.button.addEventListener('click', () => this.#begin());
  }

  /**
   * Where a player that catches up changes the rate, WebKitGTK turns the sound on, and then stops what has sound and was not asked
   * for. It tells of the rate last.
   */
  #isUnmutedByRate() {
    const { muted, playbackRate } = this.#video;
    const { value, at } = this.#rate;
    const isSoonAfter = (before) => performance.now() - before < SOON_MS;
    return !muted && (playbackRate !== value || isSoonAfter(at)) && !isSoonAfter(this.#pressedAt);
  }

  #start() {
    this.#startedAt = performance.now();
    this.#progressAt = this.#startedAt;
    this.#frames = undefined;
    const player = this.#makePlayer(this.#video, {
      failed: (failure) => this.#failed(failure),
      interrupted: () => player === this.#player && this.#interrupted(),
      changed: () => player === this.#player && this.#showChoices(),
    });
    this.#player = player;
    player.start(this.#target.url, this.#shown ? this.#attempts : 0).catch(() => {
      if (player === this.#player) this.#failed({ reason: 'The player could not be loaded', final: false });
    });
  }

  #begin() {
    this.#video.play().catch((error) => {
      if (error.name !== 'NotAllowedError' || this.#player === undefined) return;
      this.#show('Ready', 'This browser waits for your word before it plays.', false);
      this.#cover.button.hidden = false;
    });
  }

  #failed({ reason, final }) {
    if (this.#target === undefined) return;
    this.#player?.close();
    this.#player = undefined;
    this.#clearFigures();
    if (final) {
      this.#target = undefined;
      this.#show(reason, '', false);
      return;
    }
    this.#reason = reason;
    this.#showWaiting();
    this.#startSoon(this.#attempts++);
    if (this.#shown) this.#troubled();
  }

  /** The player itself goes on with another server. */
  #interrupted() {
    this.#startedAt = performance.now();
    this.#reason = 'The server does not answer';
    this.#clearFigures();
    this.#showWaiting();
    this.#troubled();
  }

  #startSoon(attempt) {
    this.#cancelRetry();
    const start = () => {
      this.#retry = undefined;
      this.#start();
    };
    this.#retry = setTimeout(start, spread(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]));
  }

  #cancelRetry() {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  #showWaiting() {
    const reason = this.#reason;
    const isQuiet = reason === undefined || this.#attempts < QUIET_ATTEMPTS;
    if (this.#excuse !== undefined) this.#show(...this.#excuse);
    else if (this.#shown) this.#show('Reconnecting', reason ?? '', true);
    else if (isQuiet) this.#show('Starting', 'Waiting for the first frame', true);
    else this.#show(reason, 'Trying again', true);
  }

  #show(title, text, busy) {
    const { element: cover, picture, title: heading, text: line, button } = this.#cover;
    cover.hidden = false;
    button.hidden = true;
    this.#sound.hidden = true;
    picture.classList.toggle('busy', busy);
    if (heading.textContent !== title) heading.textContent = title;
    if (line.textContent !== text) line.textContent = text;
  }

  /** A menu for each choice that is one. What stays the same is left alone: the viewer may have it open. */
  #showChoices() {
    const offered = (this.#player?.choices ?? []).filter(({ options }) => options.length > 1);
    const menus = new Map([...this.#choices.children].map((menu) => [menu.dataset.name, menu]));
    for (const { name, options, chosen } of offered) {
      if (!menus.has(name)) this.#choices.append(this.#menu(name));
      const menu = this.#choices.querySelector(`[data-name="${name}"] select`);
      while (menu.length > options.length) menu.lastChild.remove();
      options.forEach(({ value, label }, at) => {
        const option = menu.options[at] ?? menu.appendChild(element('option'));
        if (option.value !== `${value}`) option.value = value;
        if (option.textContent !== label) option.textContent = label;
      });
      menu.value = chosen;
      menus.delete(name);
    }
    for (const menu of menus.values()) menu.remove();
    this.#choices.hidden = offered.length === 0;
  }

  #menu(name) {
    const select = element('select', { id: `${this.#video.ariaLabel} ${name}`.replaceAll(' ', '-') });
    select.addEventListener('change', () => this.#player?.choose(name, Number(select.value)));
    const menu = element('div', {}, element('label', { textContent: name, htmlFor: select.id }), select);
    menu.dataset.name = name;
    return menu;
  }

  #showSound() {
    this.#sound.hidden = !this.#video.muted || !this.#target?.hasSound || !this.#cover.element.hidden;
  }

  #clearFigures() {
    for (const cell of Object.values(this.#figures)) Object.assign(cell, { textContent: '–', title: '' });
  }

  async #refresh(player) {
    const stats = await player.stats(serverNow());
    if (player === this.#player && this.#cover.element.hidden) this.#fill(stats);
  }

  #fill({ at, latency, latencyMeaning, bitrate, frames, dropped }) {
    const { videoWidth, videoHeight } = this.#video;
    const { Latency, Resolution, 'Frame rate': rate, Bitrate, Dropped } = this.#figures;
    Latency.textContent = latency === undefined ? '–' : seconds(latency);
    Latency.title = latencyMeaning;
    Resolution.textContent = videoWidth > 0 ? `${videoWidth}×${videoHeight}` : '–';
    Bitrate.textContent = bitrate === undefined ? '–' : bits(bitrate);
    Dropped.textContent = dropped === undefined ? '–' : `${dropped}`;
    const before = this.#frames;
    if (frames === undefined || videoWidth === 0 || at === before?.at) return;
    this.#frames = { count: frames, at };
    if (before === undefined) return;
    const perSecond = ((frames - before.count) * 1000) / (at - before.at);
    rate.textContent = `${Math.round(Math.max(0, perSecond))} fps`;
  }
}

const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(2)} s`);
