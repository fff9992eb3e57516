import { UploadError, type Place } from './upload-error.ts';

const MAX_CHARACTERS = 1024 * 1024;

/** A program in the management API's form. */
export interface RawProgram {
  readonly name: string;
  readonly scheduled: string;
  readonly repeat: boolean;
  readonly items: readonly RawItem[];
}

export interface RawItem {
  readonly url: string;
  readonly start?: number;
  readonly duration?: number;
  readonly fallbackOnErr?: boolean;
}

export const BEGIN: Place = { line: 1, column: 1 };

/** Text without its byte order mark. @throws UploadError if it is too long, or was not UTF-8 */
export function uploadText(text: string): string {
  if (text.length > MAX_CHARACTERS) throw new UploadError(BEGIN, `the text has more than ${MAX_CHARACTERS} characters`);
  // invalid bytes were decoded to this character
  const odd = text.indexOf('\uFFFD');
  if (odd >= 0) throw new UploadError(placeOf(text, odd), 'the text is not encoded as UTF-8');
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}

function placeOf(text: string, at: number): Place {
  const lines = text.slice(0, at).split(/\r\n|\n|\r/);
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}
