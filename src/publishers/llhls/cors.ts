import { allowOrigin, type AllowOrigin } from '../../access/cross-domains.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';

const METHODS = 'OPTIONS, HEAD, GET';

/** Headers by which browsers let pages of other origins read an answer (facts/01-rest-api.md, "CORS"). */
export class Cors {
  readonly #allowed: AllowOrigin;
  readonly #extra: CrossDomainsConfig['header'];

  constructor(crossDomains: CrossDomainsConfig) {
    this.#allowed = allowOrigin(crossDomains);
    this.#extra = crossDomains.header;
  }

  /** @param requested what the request's Access-Control-Request-Headers says */
  headers(origin: string | undefined, requested: string | undefined): Record<string, string> {
    const allowed = this.#allowed(origin);
    const headers: Record<string, string> = {};
    if (allowed !== '*') headers['vary'] = 'Origin';
    if (allowed === undefined) return headers;
    headers['access-control-allow-origin'] = allowed;
    headers['access-control-allow-methods'] = METHODS;
    if (allowed !== '*') headers['access-control-allow-credentials'] = 'true';
    if (requested !== undefined) headers['access-control-allow-headers'] = requested;
    for (const { key, value } of this.#extra) headers[key] = value;
    return headers;
  }
}
