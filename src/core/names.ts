const MAX_LENGTH = 255;
/** Separators of URLs and of internal names, and what URLs write in other ways. */
const RESERVED = /[/\\:?#%]/;
/** Control and format characters, lone surrogates, and what Unicode has not assigned. */
const INVISIBLE = /\p{C}/u;

/** Longest name of a stream, in bytes: it is a file name too. */
const MAX_STREAM_BYTES = 255;
/** URL paths, the management API and file names must be able to carry it. */
const STREAM = /^(?!\.{1,2}$)[^\p{Cc}\p{Cs}/:?#]+$/u;

/** Whether a publisher can call its stream so. */
export function isStreamName(name: string): boolean {
  return STREAM.test(name) && Buffer.byteLength(name) <= MAX_STREAM_BYTES;
}

/** Why a virtual host, application or output profile cannot be called so; undefined when it can. */
export function nameObjection(name: string): string | undefined {
  if (name === '') return 'is empty';
  if (name.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (name === '.' || name === '..') return 'is a step in a path, which a URL cannot contain';
  if (RESERVED.test(name)) return 'contains one of / \\ : ? # %';
  if (INVISIBLE.test(name)) return 'contains invisible characters';
  if (name.trim() !== name) return 'begins or ends with a space';
  return undefined;
}
