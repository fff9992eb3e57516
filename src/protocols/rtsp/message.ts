import { RtspError } from './error.ts';

/** Header fields by name in lower case; one that comes several times has several values. */
export type Headers = ReadonlyMap<string, readonly string[]>;

interface Message {
  readonly headers: Headers;
  readonly body: Buffer;
}

/** An answer (RFC 2326 section 7). */
export interface RtspResponse extends Message {
  readonly status: number;
  readonly reason: string;
}

/** Request of a server to its client (RFC 2326 section 6). */
export interface RtspRequest extends Message {
  readonly method: string;
  readonly uri: string;
}

const RESPONSE = /^RTSP\/1\.\d +(\d{3})(?: (.*))?$/;
const REQUEST = /^([A-Z_]+) +(\S+) +RTSP\/1\.\d$/;

/**
 * Reads the first line and the header of a message, without the final empty line.
 * @throws RtspError
 */
export function parseHead(text: string): Omit<RtspResponse, 'body'> | Omit<RtspRequest, 'body'> {
  const [first = '', ...lines] = text.split(/\r\n|\n|\r/);
  const headers = parseHeaders(lines);
  const response = RESPONSE.exec(first.trimEnd());
  if (response !== null) return { status: Number(response[1]), reason: response[2] ?? '', headers };
  const request = REQUEST.exec(first.trimEnd());
  if (request === null) throw new RtspError('not an RTSP message');
  return { method: request[1] as string, uri: request[2] as string, headers };
}

/** Returns the first value of a field. */
export function header(headers: Headers, name: string): string | undefined {
  return headers.get(name)?.[0];
}

export type Fields = Readonly<Record<string, string | undefined>>;

export function writeRequest(method: string, uri: string, fields: Fields): string {
  return `${method} ${uri} RTSP/1.0\r\n${writeFields(fields)}\r\n`;
}

export function writeResponse(status: number, reason: string, fields: Fields): string {
  return `RTSP/1.0 ${status} ${reason}\r\n${writeFields(fields)}\r\n`;
}

function writeFields(fields: Fields): string {
  let text = '';
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) text += `${name}: ${value}\r\n`;
  return text;
}

function parseHeaders(lines: readonly string[]): Headers {
  const headers = new Map<string, string[]>();
  let values: string[] | undefined;
  for (const line of lines) {
    if (/^[ \t]/.test(line) && values !== undefined) {
      values.push(`${values.pop() ?? ''} ${line.trim()}`);
      continue;
    }
    const colon = line.indexOf(':');
    // some cameras put other lines between fields
    if (colon <= 0) continue;
    const name = line.slice(0, colon).trim().toLowerCase();
    values = headers.get(name) ?? [];
    headers.set(name, values);
    values.push(line.slice(colon + 1).trim());
  }
  return headers;
}
