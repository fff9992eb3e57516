import type { CrossDomainsConfig } from '../config/model.ts';
import { wildcard } from '../lib/wildcard.ts';

/** Value of `Access-Control-Allow-Origin` for a request's `Origin`; undefined when nothing is allowed. */
export type AllowOrigin = (origin: string | undefined) => string | undefined;

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const ANY_SCHEME = '[a-z][a-z0-9+.-]*:\\/\\/';

/** Whether a page may use an answer that a browser had to go to another host for: it does not tell that one which page it is of. */
export function followsRedirects(crossDomains: CrossDomainsConfig | undefined): boolean {
  return crossDomains?.url.includes('*') === true;
}

/**
 * Reads the CrossDomains of a configuration: `*` for every origin, `null` alone for `null`, else patterns with `*`
 * and `?`, of every scheme when they name none (docs/compatibility.md#authentication-and-cors).
 */
export function allowOrigin(crossDomains: CrossDomainsConfig | undefined): AllowOrigin {
  const urls = crossDomains?.url ?? [];
  if (urls.includes('*')) return () => '*';
  if (urls.length === 1 && urls[0] === 'null') return () => 'null';
  const patterns = urls.map((url) => wildcard(url, SCHEME.test(url) || url === 'null' ? '' : ANY_SCHEME));
  return (origin) => (origin !== undefined && patterns.some((pattern) => pattern.test(origin)) ? origin : undefined);
}
