/**
 * A part of a stream whose media and dates go on without a break. In a gap there is nothing to play.
 * @typedef {object} Stretch
 * @property {number} start media time of its beginning, in seconds
 * @property {number} seconds its length
 * @property {number} date of its beginning, in milliseconds since the epoch
 * @property {boolean} gap
 */
/** @typedef {{ from: number, to: number }} Span of dates, in milliseconds since the epoch */

/** Dates that differ by less go on: those of a playlist follow the clock of the encoder only roughly. */
const TOLERANCE_MS = 500;
/** Breaks that are shorter are not shown. */
const MIN_BREAK_MS = 1000;

/** @param {Stretch} stretch */
const endOf = ({ start, seconds }) => start + seconds;
/** @param {Stretch} stretch */
const endDateOf = ({ date, seconds }) => date + seconds * 1000;

/**
 * Joins the segments of a playlist.
 * @param {Iterable<{ start: number, duration: number, programDateTime: number | null, gap?: boolean | undefined }>} segments
 * @returns {Stretch[]} none where a segment has no date
 */
export function stretchesOf(segments) {
  /** @type {Stretch[]} */
  const stretches = [];
  for (const { start, duration, programDateTime: date, gap = false } of segments) {
    if (date === null) return [];
    const last = stretches.at(-1);
    if (last?.gap === gap && Math.abs(endDateOf(last) - date) < TOLERANCE_MS)
      last.seconds = start + duration - last.start;
    else stretches.push({ start, seconds: duration, date, gap });
  }
  return stretches;
}

/**
 * Date of a media time. After the last stretch dates go on.
 * @param {readonly Stretch[]} stretches one at least
 * @param {number} time seconds
 */
export function dateAt(stretches, time) {
  const { date, start } = stretches.findLast((one) => one.start <= time) ?? /** @type {Stretch} */ (stretches[0]);
  return date + (time - start) * 1000;
}

/**
 * Media time of a date, or of the next media where there is none at that date.
 * @param {readonly Stretch[]} stretches one at least
 * @param {number} wanted
 */
export function timeAt(stretches, wanted) {
  const playable = stretches.filter(({ gap }) => !gap);
  const { date, start } = playable.find((one) => endDateOf(one) > wanted) ??
    playable.at(-1) ?? { date: wanted, start: 0 };
  return start + Math.max(0, wanted - date) / 1000;
}

/**
 * Media time that is some seconds of playable media away from another one.
 * @param {readonly Stretch[]} stretches
 * @param {number} time
 * @param {number} seconds negative: back
 */
export function jumped(stretches, time, seconds) {
  const playable = stretches.filter(({ gap }) => !gap);
  let left = seconds;
  for (const one of playable)
    left += Math.min(Math.max(0, time - one.start), one === playable.at(-1) ? Infinity : one.seconds);
  for (const one of playable) {
    if (left < one.seconds || one === playable.at(-1)) return one.start + Math.max(0, left);
    left -= one.seconds;
  }
  return time;
}

/**
 * Spans without media: gaps, and breaks between stretches. Those close together are joined.
 * @param {readonly Stretch[]} stretches
 * @param {number} nearMs
 * @returns {Span[]}
 */
export function missingSpans(stretches, nearMs) {
  /** @type {Span[]} */
  const spans = [];
  /** @param {Span} span */
  const add = ({ from, to }) => {
    const last = spans.at(-1);
    if (last !== undefined && from - last.to < nearMs) last.to = Math.max(last.to, to);
    else spans.push({ from, to });
  };
  stretches.forEach((one, index) => {
    const before = stretches[index - 1];
    if (before !== undefined && one.date - endDateOf(before) > MIN_BREAK_MS)
      add({ from: endDateOf(before), to: one.date });
    if (one.gap) add({ from: one.date, to: endDateOf(one) });
  });
  return spans;
}

/**
 * Last media time of some stretches.
 * @param {readonly Stretch[]} stretches one at least
 */
export const lastTime = (stretches) => endOf(/** @type {Stretch} */ (stretches.at(-1)));

/**
 * Place of a date on a time line: 0 at its beginning, 1 at its end.
 * @param {Span} span
 * @param {number} date
 */
export function placeOf({ from, to }, date) {
  return to > from ? Math.min(1, Math.max(0, (date - from) / (to - from))) : 1;
}

/** @param {number} date */
const dayOf = (date) => new Date(date).toDateString();

/**
 * Time of day as the viewer's browser writes it, with the date where it is another day than that of the time line's end.
 * @param {number} date
 * @param {number} end
 * @param {Intl.LocalesArgument} [locale]
 */
export function clock(date, end, locale) {
  const at = new Date(date);
  const time = at.toLocaleTimeString(locale);
  return dayOf(date) === dayOf(end) ? time : `${dayMonth(at, locale)}, ${time}`;
}

/**
 * @param {Date} date
 * @param {Intl.LocalesArgument} locale
 */
const dayMonth = (date, locale) => date.toLocaleDateString(locale, { day: 'numeric', month: 'short' });

/**
 * "5 s", "3 min 5 s", "1 h 2 min".
 * @param {number} seconds
 */
export function lag(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((count) => count * HOUR),
];

/**
 * Round times of day to label a time line with, in the viewer's time zone; midnight is labelled with the date.
 * @param {Span} span
 * @param {number} most labels that there is room for
 * @param {Intl.LocalesArgument} [locale]
 * @returns {{ date: number, text: string }[]}
 */
export function marksOf({ from, to }, most, locale) {
  const step =
    STEPS.find((one) => (to - from) / one <= most) ?? Math.ceil((to - from) / most / (24 * HOUR)) * 24 * HOUR;
  /** @param {number} date */
  const offset = (date) => new Date(date).getTimezoneOffset() * MINUTE;
  const marks = [];
  for (let local = Math.ceil((from - offset(from)) / step) * step; ; local += step) {
    // where clocks change, the offset is that of the mark itself
    const date = local + offset(local + offset(from));
    if (!(date <= to)) return marks;
    if (date >= from) marks.push({ date, text: markText(date, step, locale) });
  }
}

/**
 * @param {number} date
 * @param {number} step
 * @param {Intl.LocalesArgument} locale
 */
function markText(date, step, locale) {
  const at = new Date(date);
  if (at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0) return dayMonth(at, locale);
  if (step < MINUTE) return at.toLocaleTimeString(locale);
  return at.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });
}

/**
 * A wish of the viewer, by a key.
 * @typedef {{ jump: number } | 'begin' | 'live' | 'pause'} Wish
 */
/** @type {readonly [key: string, wish: Wish][]} */
const WISHES = [
  ['ArrowLeft', { jump: -5 }],
  ['ArrowDown', { jump: -5 }],
  ['ArrowRight', { jump: 5 }],
  ['ArrowUp', { jump: 5 }],
  ['j', { jump: -10 }],
  ['l', { jump: 10 }],
  ['PageDown', { jump: -60 }],
  ['PageUp', { jump: 60 }],
  ['Home', 'begin'],
  ['End', 'live'],
  ['k', 'pause'],
  [' ', 'pause'],
];
const KEYS = new Map(WISHES);
/** Keys that scroll the page, and mean something to the time line only while it has the focus. */
const SCROLLING = new Set(['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp']);

/**
 * Wish that a key stands for.
 * @param {{ key: string, altKey: boolean, ctrlKey: boolean, metaKey: boolean, repeat: boolean }} event
 * @param {boolean} isFocused whether the time line has the focus
 * @returns {Wish | undefined}
 */
export function wishOf({ key, altKey, ctrlKey, metaKey, repeat }, isFocused) {
  if (altKey || ctrlKey || metaKey || (SCROLLING.has(key) && !isFocused)) return undefined;
  const wish = KEYS.get(key.length === 1 ? key.toLowerCase() : key);
  return repeat && wish === 'pause' ? undefined : wish;
}
