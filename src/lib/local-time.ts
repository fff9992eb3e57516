import { BoundedMap } from './bounded-map.ts';

/** Answers show few times, and the same ones again and again. */
const shown = new BoundedMap<number, string>(256);

/** `YYYY-MM-DDTHH:MM:SS.mmm±hh:mm` in the server's own zone, as the API shows times. @param time milliseconds since the epoch */
export function localTime(time: number): string {
  const known = shown.get(time);
  if (known !== undefined) return known;
  const text = format(time);
  shown.set(time, text);
  return text;
}

function format(time: number): string {
  const offset = -new Date(time).getTimezoneOffset();
  const local = new Date(time + offset * 60_000).toISOString().slice(0, -1);
  const minutes = Math.abs(offset);
  return `${local}${offset < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
