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

/** Names of what a player asks for. */
export interface PlayedNames {
  readonly stream: string;
  readonly playlist?: string;
}

/** Instance that clients of Flash servers name where they mean none. */
const DEFAULT_INSTANCE = '_definst_';

/**
 * Stream and playlist in a player's URL `rtmp://host/app/stream[/playlist]`. Clients take a first part of the path for the application:
 * of two, or all but the last one.
 * @param key argument of `play`, such as `name?query`
 * @returns a name that no stream has where the path is longer
 */
export function playedNames(key: string, { instance }: PublishAddress): PlayedNames {
  const segments = [instance === DEFAULT_INSTANCE ? '' : instance, ...pathOf(key).split('/')].filter(
    (segment) => segment !== '',
  );
  const [stream = '', playlist, ...more] = segments.map(percentDecoded);
  if (more.length > 0) return { stream: segments.join('/') };
  return { stream, ...(playlist !== undefined && { playlist }) };
}

function pathOf(text: string): string {
  return text.split('?', 1)[0] as string;
}

function short(text: string): string {
  return text.slice(0, MAX_LENGTH);
}
