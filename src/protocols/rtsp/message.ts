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

/** A request (RFC 2326 section 6). */
export interface RtspRequest extends Message {
  readonly method: string;
  readonly uri: string;
}

const RESPONSE = /^RTSP\/1\.\d +(\d{3})(?: (.*))?$/;
/** End of a request line of another version, such as RTSP/2.0. */
const VERSION = / RTSP\/\d\.\d\s*$/;
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
  if (request === null)
    throw VERSION.test(first) ? new RtspError('another version of RTSP', 505) : new RtspError('not an RTSP message');
  return { method: request[1] as string, uri: request[2] as string, headers };
}

/** Returns the first value of a field. */
export function header(headers: Headers, name: string): string | undefined {
  return headers.get(name)?.[0];
}

/** Reason phrases of the statuses that a server sends (RFC 2326 section 7.1.1). */
const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  406: 'Not Acceptable',
  413: 'Request Entity Too Large',
  415: 'Unsupported Media Type',
  451: 'Parameter Not Understood',
  453: 'Not Enough Bandwidth',
  454: 'Session Not Found',
  455: 'Method Not Valid in This State',
  459: 'Aggregate Operation Not Allowed',
  460: 'Only Aggregate Operation Allowed',
  461: 'Unsupported Transport',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  505: 'RTSP Version Not Supported',
  551: 'Option not supported',
};

export function reasonOf(status: number): string {
  return REASONS[status] ?? (status < 500 ? 'Rejected' : 'Failed');
}

/** A field with several values is written several times. */
export type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** @param body with its `Content-Type` among the fields; empty for none */
export function writeRequest(method: string, uri: string, fields: Fields, body = ''): string {
  const length = body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  return `${method} ${uri} RTSP/1.0\r\n${writeFields({ ...fields, ...length })}\r\n${body}`;
}

export function writeResponse(status: number, reason: string, fields: Fields): string {
  return `RTSP/1.0 ${status} ${reason}\r\n${writeFields(fields)}\r\n`;
}

function writeFields(fields: Fields): string {
  let text = '';
  for (const [name, value] of Object.entries(fields))
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) text += `${name}: ${one}\r\n`;
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
