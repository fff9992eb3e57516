import { header, type Headers } from './message.ts';

/** Timeout of sessions where a server gives none (RFC 2326 section 12.37). */
export const DEFAULT_TIMEOUT_SECONDS = 60;
const MIN_TIMEOUT_SECONDS = 2;
const MAX_TIMEOUT_SECONDS = 3600;
const TIMEOUT = /^timeout=(\d{1,6})$/i;

export interface SessionField {
  readonly id: string;
  /** Undefined where the server gives none. */
  readonly timeoutSeconds: number | undefined;
}

/** Reads the Session field of an answer (RFC 2326 section 12.37); undefined where it has none. */
export function readSession(headers: Headers): SessionField | undefined {
  const [id = '', ...parameters] = (header(headers, 'session') ?? '').split(';').map((part) => part.trim());
  if (id === '') return undefined;
  const given = parameters.map((part) => TIMEOUT.exec(part)?.[1]).find((found) => found !== undefined);
  const timeoutSeconds =
    given === undefined ? undefined : Math.min(MAX_TIMEOUT_SECONDS, Math.max(MIN_TIMEOUT_SECONDS, Number(given)));
  return { id, timeoutSeconds };
}
