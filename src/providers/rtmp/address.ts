/** What a publisher's URL says (facts/03-access-control.md, "Publishing URL forms"). */
export interface PublishAddress {
  /** Host of the URL, without port; empty when there is none. */
  readonly host: string;
  readonly app: string;
  /** Behind the application in the URL: a name that some encoders put there, or an instance, which is ignored. */
  readonly instance: string;
  /** Scheme, host and port as the client wrote them. */
  readonly origin: string;
}

/**
 * Reads what `connect` brings. Encoders add slashes, queries and `/instance` to the application,
 * and some leave `tcUrl` out.
 */
export function readAddress(tcUrl: string, app: string): PublishAddress {
  const url = URL.canParse(tcUrl) ? new URL(tcUrl) : undefined;
  const segments = pathOf(app === '' ? (url?.pathname ?? '') : app).split('/').filter((segment) => segment !== '');
  return {
    host: url?.hostname ?? '',
    app: segments[0] ?? '',
    instance: segments.at(1) ?? '',
    origin: url === undefined ? '' : `${url.protocol}//${url.host}`,
  };
}

/**
 * The stream's name out of a stream key such as `name?query`; from the URL's path when the key is empty.
 * Answers undefined when there is none, or one that no URL can name.
 */
export function streamName(key: string, address: PublishAddress): string | undefined {
  const name = pathOf(key).replace(/^\/+|\/+$/g, '') || address.instance;
  return NAME.test(name) ? name : undefined;
}

/** URL paths, the management API and file names must be able to carry it. */
const NAME = /^[^\p{Cc}/:?#]{1,255}$/u;

function pathOf(text: string): string {
  return text.split('?', 1)[0] as string;
}
