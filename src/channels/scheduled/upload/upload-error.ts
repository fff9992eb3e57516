/** An upload that cannot be read. `message` begins with the place; lines and columns are counted from 1. */
export class UploadError extends Error {
  override readonly name = 'UploadError';

  constructor({ line, column }: Place, message: string) {
    super(`line ${line}, column ${column}: ${message}`);
  }
}

export interface Place {
  readonly line: number;
  readonly column: number;
}

const MAX_SHOWN = 80;

/** Quotes a value for messages. */
export function shown(value: string): string {
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}...` : value);
}
