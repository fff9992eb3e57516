import type { VirtualHostConfig } from '../../config/model.ts';
import type { PullOrder, PullSpec } from './spec.ts';

type Origins = NonNullable<VirtualHostConfig['origins']>;
type Origin = Origins['origin'][number];

/** Defaults of Server.xml. */
const DEFAULTS: Origins['properties'] = {
  noInputFailoverTimeout: 3000,
  unusedStreamDeletionTimeout: 60_000,
  streamFailbackTimeout: 3000,
  retryCount: 0,
};

/**
 * Finds the Origins entry of a virtual host for a stream that no node has (docs/compatibility.md#origins): an exact
 * location first, else the longest that its path begins with.
 * @param query of the viewer, which the origin gets where that is configured
 */
export function matchOrigin(
  origins: Origins | undefined,
  app: string,
  stream: string,
  query: URLSearchParams,
): PullOrder | undefined {
  const path = `/${app}/${stream}`;
  const origin = origins && (exact(origins.origin, path) ?? longest(origins.origin, path));
  if (origins === undefined || origin === undefined) return undefined;
  const {
    pass: { scheme, urls, forwardQueryParams },
    location,
    persistent,
    failback,
    relay = false,
    ignoreRtcpSRTimestamp: ignoresReports,
  } = origin;
  const rest = path.slice(location.length).split('/').map(encodeURIComponent).join('/');
  const forwarded = forwardQueryParams ? query.toString() : '';
  const { streamFailbackTimeout } = origins.properties;
  const spec = {
    ...timesOf(origins),
    relay,
    ignoresReports,
    isFromStore: false,
    failbackMs: failback ? streamFailbackTimeout : 0,
    urls: urls.url.map((url) => urlOf(scheme, url, rest, forwarded)),
  };
  return { spec, persistent };
}

/** Order for a stream whose URL is in the store of origins: it is pulled as a relay. */
export function storeOrder(origins: Origins | undefined, url: string): PullOrder {
  const spec = { ...timesOf(origins), relay: true, isFromStore: true, failbackMs: 0, urls: [url] };
  return { spec, persistent: false };
}

function exact(origins: readonly Origin[], path: string): Origin | undefined {
  return origins.find(({ strictLocation, location }) => strictLocation && location === path);
}

function longest(origins: readonly Origin[], path: string): Origin | undefined {
  const able = origins.filter(({ strictLocation, location }) => !strictLocation && path.startsWith(location));
  return able.sort((a, b) => b.location.length - a.location.length)[0];
}

function urlOf(scheme: string, url: string, rest: string, forwarded: string): string {
  // SRT has no path: a stream id at the end of the URL goes on. A viewer's query would be options of the socket.
  if (scheme === 'srt') return `srt://${url}${rest}`;
  const [base = '', ...own] = url.split('?');
  const query = [...own, forwarded].filter((part) => part !== '').join('&');
  return `${scheme}://${base}${rest}${query === '' ? '' : `?${query}`}`;
}

function timesOf(origins: Origins | undefined): Pick<PullSpec, 'noInputFailoverMs' | 'unusedMs' | 'retryCount'> {
  const { noInputFailoverTimeout, unusedStreamDeletionTimeout, retryCount } = origins?.properties ?? DEFAULTS;
  return { noInputFailoverMs: noInputFailoverTimeout, unusedMs: unusedStreamDeletionTimeout, retryCount };
}
