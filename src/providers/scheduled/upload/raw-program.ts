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

/** The text without the mark of its encoding. @throws UploadError it is too long */
export function uploadText(text: string): string {
  if (text.length > MAX_CHARACTERS) throw new UploadError(BEGIN, `the text has more than ${MAX_CHARACTERS} characters`);
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}
