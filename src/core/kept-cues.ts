import type { Continuity } from './continuity.ts';
import { isCueText, type SubtitleCue } from './subtitle-cue.ts';

const KEY = 'subtitles';
/** Limits of the cues that are kept for the stream that continues this one: the first of those whose time is not over. */
const MAX_CUES = 200;
const MAX_CHARACTERS = 32 * 1024;
/** A cue that is kept begins no later than this, in milliseconds from now. */
const MAX_AHEAD_MS = 24 * 3_600_000;

/** A cue and when it is shown, in milliseconds since the epoch: the media of the next stream count from another time. */
export interface KeptCue extends SubtitleCue {
  readonly label: string;
  readonly from: number;
  readonly until: number;
}

/** Cues that are shown, or wait for their time, for the stream that continues this one. */
export class KeptCues {
  /** By their begin. */
  #cues: readonly KeptCue[] = [];
  readonly #continuity: Continuity;

  constructor(continuity: Continuity) {
    this.#continuity = continuity;
  }

  /** Cues of the stream before that are not over. @param now milliseconds since the epoch */
  inherited(now: number): KeptCue[] {
    const before = this.#continuity.inherited(KEY);
    this.#cues = (Array.isArray(before) ? before : []).flatMap(readKept).filter((cue) => isAhead(cue, now));
    return [...this.#cues];
  }

  /** @param now milliseconds since the epoch */
  add(cues: readonly KeptCue[], now: number): void {
    const all = [...this.#cues, ...cues].filter((cue) => isAhead(cue, now));
    let characters = 0;
    this.#cues = all
      .sort((one, other) => one.from - other.from)
      .slice(0, MAX_CUES)
      .filter(({ text, settings }) => (characters += text.length + settings.length) <= MAX_CHARACTERS);
    this.#continuity.keep(KEY, this.#cues);
  }
}

function isAhead({ from, until }: KeptCue, now: number): boolean {
  return until > now && from < now + MAX_AHEAD_MS;
}

/** Reads what another node, maybe of another version, has written. */
function readKept(value: unknown): KeptCue[] {
  const { label, from, until, settings, text } = (value ?? {}) as Partial<Record<keyof KeptCue, unknown>>;
  if (typeof label !== 'string' || typeof settings !== 'string' || typeof text !== 'string') return [];
  if (!Number.isFinite(from) || !Number.isFinite(until) || !isCueText(text) || /[\r\n]|-->/.test(settings)) return [];
  return [{ label, from: from as number, until: until as number, settings, text }];
}
