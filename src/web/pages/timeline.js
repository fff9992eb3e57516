import { element, replaceIfChanged } from './common.js';
import { clock, dateAt, jumped, lag, marksOf, missingSpans, placeOf, timeAt, wishOf } from './rewind-times.js';

/** @import { Rewinder } from './rewinder.js' */
/** @import { Span, Stretch, Wish } from './rewind-times.js' */

/** CSS pixels that a label takes, with the space beside it. */
const MARK_PIXELS = 90;
/** CSS pixels at both ends in which no label stands. */
const MARGIN_PIXELS = 34;
/** Shorter parts of the bar are not seen. */
const MISSING_PARTS = 400;
/** A pointer so far before the next media points to nothing. */
const MISSING_MS = 1000;
/** Seconds of the buttons. */
const BUTTON_JUMP = 10;
/** Where keys mean something else; in the others the space bar does. */
const TYPING = 'input, select, textarea, dialog';
const PRESSED_BY_SPACE = 'button, summary, a';

/** @param {number} place 0 to 1 */
const percent = (place) => `${(place * 100).toFixed(3)}%`;

/**
 * Contents of the bar: dates in milliseconds since the epoch.
 * @typedef {Span & { at: number, isLive: boolean, hasEnded: boolean, stretches: readonly Stretch[] }} Drawn
 */

/**
 * A bar over what can be rewound, by the wall clock, with previews, jumps and the way back to the live edge. Hidden while there is
 * nothing to rewind.
 */
export class Timeline {
  element;
  #video;
  /** @type {{ readonly rewinder?: Rewinder | undefined } | undefined} */
  #player;
  #fill = element('div', { className: 'timeline-fill' });
  #gaps = element('div', { className: 'timeline-gaps' });
  #knob = element('div', { className: 'timeline-knob' });
  /** Made for the first viewer who looks. @type {HTMLVideoElement | undefined} */
  #preview;
  #peekText = element('span');
  #peek = element('div', { className: 'timeline-peek', hidden: true }, this.#peekText);
  #marks = element('div', { className: 'timeline-marks' });
  #clock = element('strong');
  #lag = element('span', { className: 'muted' });
  #live = element('button', { type: 'button', className: 'button timeline-live', textContent: 'Live' });
  #slider;
  /** Date that the viewer drags to. @type {number | undefined} */
  #dragged;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.#video = video;
    this.#slider = element(
      'div',
      { className: 'timeline-slider', tabIndex: 0, role: 'slider', ariaLabel: 'Time', ariaValueMin: '0' },
      element('div', { className: 'timeline-rail' }, this.#fill, this.#gaps),
      this.#knob,
      this.#peek,
    );
    for (const part of [this.#marks, this.#peek]) part.ariaHidden = 'true';
    this.element = element(
      'div',
      { className: 'timeline', hidden: true, role: 'group', ariaLabel: 'Rewind' },
      this.#slider,
      this.#marks,
      element(
        'div',
        { className: 'timeline-row' },
        element('p', {}, this.#clock, ' ', this.#lag),
        element(
          'span',
          { className: 'timeline-buttons' },
          this.#jumpButton(-BUTTON_JUMP),
          this.#jumpButton(BUTTON_JUMP),
          this.#live,
        ),
      ),
    );
    this.#live.addEventListener('click', () => this.#rewinder?.goLive());
    this.#listen();
  }

  /** Player whose stream is shown; undefined while nothing plays. @param {{ readonly rewinder?: Rewinder | undefined } | undefined} player */
  set player(player) {
    this.#player = player;
    this.#dragged = undefined;
    this.#endPeek();
    this.update();
  }

  /** Shows the present state. Call it once a second. */
  update() {
    const drawn = this.#drawn();
    this.element.hidden = drawn === undefined;
    if (drawn !== undefined) this.#draw(drawn);
  }

  get #rewinder() {
    return this.#player?.rewinder;
  }

  /** @returns {Drawn | undefined} */
  #drawn() {
    const there = this.#rewinder?.rewindable;
    if (there === undefined) return undefined;
    const { stretches, begin, live, hasEnded } = there;
    const [from, to] = [dateAt(stretches, begin), dateAt(stretches, live)];
    const isLive = this.#dragged === undefined && !hasEnded && this.#rewinder?.followsEdge === true;
    const at = this.#dragged ?? (isLive ? to : dateAt(stretches, this.#video.currentTime));
    return { from, to, at, isLive, hasEnded, stretches };
  }

  /** @param {Drawn} drawn */
  #draw({ from, to, at, isLive, hasEnded, stretches }) {
    const span = { from, to };
    const place = percent(placeOf(span, at));
    this.#fill.style.width = place;
    this.#knob.style.left = place;
    const time = clock(at, to);
    const behind = hasEnded ? `${lag((to - at) / 1000)} before the end` : `${lag((to - at) / 1000)} behind`;
    setText(this.#clock, time);
    setText(this.#lag, isLive ? '' : behind);
    this.#live.hidden = hasEnded;
    this.#live.ariaPressed = `${isLive}`;
    Object.assign(this.#slider, {
      ariaValueMax: `${Math.round((to - from) / 1000)}`,
      ariaValueNow: `${Math.round(Math.min(Math.max(0, at - from), to - from) / 1000)}`,
      ariaValueText: `${time}, ${isLive ? 'live' : behind}`,
    });
    this.#drawMarks(span);
    this.#drawGaps(span, stretches);
  }

  /** @param {Span} span */
  #drawMarks(span) {
    const width = this.#slider.clientWidth;
    const most = Math.max(1, Math.floor(width / MARK_PIXELS));
    const marks = marksOf(span, most).filter(({ date }) => {
      const left = placeOf(span, date) * width;
      return left >= MARGIN_PIXELS && left <= width - MARGIN_PIXELS;
    });
    replaceIfChanged(this.#marks, marks, () => marks.map(({ text }) => element('span', {}, text)));
    marks.forEach(({ date }, index) => {
      const mark = this.#marks.children[index];
      if (mark instanceof HTMLElement) mark.style.left = percent(placeOf(span, date));
    });
  }

  /**
   * @param {Span} span
   * @param {readonly Stretch[]} stretches
   */
  #drawGaps(span, stretches) {
    const missing = missingSpans(stretches, (span.to - span.from) / MISSING_PARTS).filter(({ to }) => to > span.from);
    while (this.#gaps.children.length > missing.length) this.#gaps.lastChild?.remove();
    missing.forEach(({ from, to }, index) => {
      const gap = this.#gaps.children[index] ?? this.#gaps.appendChild(element('div'));
      if (!(gap instanceof HTMLElement)) return;
      const left = placeOf(span, from);
      Object.assign(gap.style, { left: percent(left), width: percent(placeOf(span, to) - left) });
    });
  }

  #listen() {
    const slider = this.#slider;
    slider.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      slider.setPointerCapture(event.pointerId);
      this.#drag(event);
    });
    slider.addEventListener('pointermove', (event) => {
      if (this.#dragged !== undefined) this.#drag(event);
      else if (event.pointerType !== 'touch') this.#showPeek(this.#dateAt(event));
    });
    slider.addEventListener('pointerup', (event) => {
      const date = this.#dragged;
      if (date === undefined) return;
      this.#endDrag();
      if (event.pointerType === 'touch') this.#endPeek();
      const there = this.#rewinder?.rewindable;
      if (there !== undefined) this.#rewinder?.seek(timeAt(there.stretches, date));
    });
    slider.addEventListener('pointercancel', () => this.#endDrag());
    slider.addEventListener('pointerleave', () => this.#dragged === undefined && this.#endPeek());
    for (const event of ['timeupdate', 'seeking', 'pause', 'play'])
      this.#video.addEventListener(event, () => this.update());
    document.addEventListener('keydown', (event) => this.#press(event));
  }

  /**
   * Date under a pointer.
   * @param {PointerEvent} event
   */
  #dateAt({ clientX }) {
    const drawn = this.#drawn();
    if (drawn === undefined) return undefined;
    const { left, width } = this.#slider.getBoundingClientRect();
    const place = Math.min(1, Math.max(0, (clientX - left) / Math.max(1, width)));
    return drawn.from + place * (drawn.to - drawn.from);
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    this.#dragged = this.#dateAt(event);
    this.#showPeek(this.#dragged);
    this.update();
  }

  #endDrag() {
    this.#dragged = undefined;
    this.update();
  }

  /** Shows the time and the preview of a date. @param {number | undefined} date */
  #showPeek(date) {
    const [drawn, rewinder] = [this.#drawn(), this.#rewinder];
    if (date === undefined || drawn === undefined || rewinder === undefined) return this.#endPeek();
    const time = timeAt(drawn.stretches, date);
    const shown = dateAt(drawn.stretches, time);
    const text = clock(shown, drawn.to);
    this.#peek.hidden = false;
    setText(this.#peekText, shown - date > MISSING_MS ? `Nothing until ${text}` : text);
    this.#showPreview(rewinder, time);
    const [width, own] = [this.#slider.clientWidth, this.#peek.offsetWidth];
    const left = placeOf(drawn, date) * width - own / 2;
    this.#peek.style.left = `${Math.max(0, Math.min(left, width - own))}px`;
  }

  /**
   * @param {Rewinder} rewinder
   * @param {number} time
   */
  #showPreview({ previews }, time) {
    if (!previews.areThere) {
      if (this.#preview !== undefined) this.#preview.hidden = true;
      return;
    }
    const video = this.#preview ?? this.#makePreview();
    video.hidden = false;
    video.classList.add('stale');
    previews.show(video, time);
  }

  #makePreview() {
    const video = element('video', { muted: true, playsInline: true, tabIndex: -1 });
    video.addEventListener('seeked', () => video.classList.remove('stale'));
    this.#peek.prepend(video);
    this.#preview = video;
    return video;
  }

  #endPeek() {
    if (this.#peek.hidden) return;
    this.#peek.hidden = true;
    this.#rewinder?.previews.rest();
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    const { target, key } = event;
    if (this.element.hidden || event.defaultPrevented || !(target instanceof Element)) return;
    if (target.closest(TYPING) !== null) return;
    const wish = wishOf(event, target === this.#slider);
    if (wish === undefined) return;
    if (key === ' ' && target.closest(PRESSED_BY_SPACE) !== null) return;
    // browsers have such keys of their own for it
    if (target === this.#video && !/^[jkl]$/i.test(key)) return;
    event.preventDefault();
    this.#do(wish);
  }

  /** @param {Wish} wish */
  #do(wish) {
    const [rewinder, video] = [this.#rewinder, this.#video];
    const there = rewinder?.rewindable;
    if (rewinder === undefined || there === undefined) return;
    if (wish === 'live') rewinder.goLive();
    else if (wish === 'begin') rewinder.seek(there.begin);
    else if (wish !== 'pause') {
      const from = rewinder.followsEdge ? there.live : video.currentTime;
      rewinder.seek(jumped(there.stretches, from, wish.jump));
    } else if (video.paused) void video.play().catch(() => undefined);
    else video.pause();
    this.update();
  }

  /** @param {number} seconds */
  #jumpButton(seconds) {
    const button = element('button', {
      type: 'button',
      className: 'button',
      textContent: `${seconds < 0 ? '−' : '+'}${Math.abs(seconds)} s`,
      title: `${seconds < 0 ? 'Back' : 'Forward'} ${Math.abs(seconds)} seconds`,
    });
    button.addEventListener('click', () => this.#do({ jump: seconds }));
    return button;
  }
}

/**
 * @param {HTMLElement} place
 * @param {string} text
 */
function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}
