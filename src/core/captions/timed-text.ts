import { cueText, type CaptionText } from '../../codecs/captions/caption-text.ts';

/** Milliseconds of media for which a text is shown, unless another one comes before. */
const SHOWN_MS = 6000;
const MAX_CHARACTERS = 1000;
const MAX_LINES = 10;

/** Text of data messages (`onTextData`), each of which replaces the one before. */
export class TimedText {
  #texts: readonly CaptionText[] = [];
  #until = -Infinity;
  #revision = 0;

  /** Shows a text from a time on, in milliseconds; an empty one shows none. Markup is text; what is too long is cut. */
  set(text: string, now: number): void {
    const lines = cueText(text.slice(0, MAX_CHARACTERS))
      .replaceAll('\0', '')
      .split(/\r\n|\r|\n/)
      .map((line) => line.trim())
      .filter((line) => line !== '');
    this.#texts = lines.length === 0 ? [] : [{ settings: '', text: lines.slice(0, MAX_LINES).join('\n') }];
    this.#until = now + SHOWN_MS;
    this.#revision++;
  }

  /** Number that is another when the text may be another. */
  revision(now: number): number {
    if (this.#texts.length > 0 && now >= this.#until) {
      this.#texts = [];
      this.#revision++;
    }
    return this.#revision;
  }

  texts(): readonly CaptionText[] {
    return this.#texts;
  }
}
