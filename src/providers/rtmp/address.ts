import { percentDecoded } from '../../lib/percent.ts';

/** Parts of a publisher's URL (docs/compatibility.md#urls). */
export interface PublishAddress {
  /** Host of the URL, without port; empty when there is none. */
  readonly host: string;
  readonly app: string;
  /** Path segment after the application: the stream's name with some encoders, or an instance, which is ignored. */
  readonly instance: string;
  /** Scheme, host and port as the client wrote them. */
  readonly origin: string;
}

/** Characters; longer parts are cut. */
const MAX_LENGTH = 255;

/**
 * Reads what `connect` brings. Encoders add slashes, queries and `/instance` to the application,
 * and some leave `tcUrl` out.
 */
export function readAddress(tcUrl: string, app: string): PublishAddress {
  const url = URL.canParse(tcUrl) ? new URL(tcUrl) : undefined;
  const segments = pathOf(app === '' ? (url?.pathname ?? '') : app)
    .split('/')
    .filter((segment) => segment !== '');
  return {
    host: short(url?.hostname ?? ''),
    app: short(percentDecoded(segments[0] ?? '')),
    instance: short(segments[1] ?? ''),
    origin: url === undefined ? '' : short(`${url.protocol}//${url.host}`),
  };
}

/**
 * Stream name in a stream key such as `name?query`, or in the URL's path when the key is empty. The name need not be a
 * valid one. Some encoders send percent-encoding as it was typed, others undo it: both mean the name
 * that viewers ask for.
 */
export function streamName(key: string, address: PublishAddress): string {
  return percentDecoded(pathOf(key).replace(/^\/+|\/+$/g, '') || address.instance);
}

function pathOf(text: string): string {
  return text.split('?', 1)[0] as string;
}

function short(text: string): string {
  return text.slice(0, MAX_LENGTH);
}
