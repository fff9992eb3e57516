import { allowOrigin, followsRedirects, type AllowOrigin } from '../../../access/cross-domains.ts';
import type { CrossDomainsConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import type { Exchange } from '../answer/exchange.ts';

const METHODS = 'OPTIONS, HEAD, GET';
/** Methods of routes that take reports. */
export const REPORT_METHODS = 'OPTIONS, POST';

/** Headers by which browsers let pages of other origins read an answer (docs/compatibility.md#authentication-and-cors). */
class Cors {
  readonly #allowed: AllowOrigin;
  readonly #extra: CrossDomainsConfig['header'];

  constructor(crossDomains: CrossDomainsConfig) {
    this.#allowed = allowOrigin(crossDomains);
    this.#extra = crossDomains.header;
  }

  /** @param requested value of Access-Control-Request-Headers */
  headers(origin: string | undefined, requested: string | undefined, methods: string): Record<string, string> {
    const allowed = this.#allowed(origin);
    const headers: Record<string, string> = {};
    if (allowed !== '*') headers['vary'] = 'Origin';
    if (allowed === undefined) return headers;
    headers['access-control-allow-origin'] = allowed;
    headers['access-control-allow-methods'] = methods;
    // a page learns why it needs a token, or another one
    headers['access-control-expose-headers'] = 'WWW-Authenticate';
    if (allowed !== '*') headers['access-control-allow-credentials'] = 'true';
    if (requested !== undefined) headers['access-control-allow-headers'] = requested;
    for (const { key, value } of this.#extra) headers[key.toLowerCase()] = value;
    return headers;
  }
}

type Publisher = 'llhls' | 'hls' | 'playback' | 'thumbnail' | 'flv';

/** CrossDomains of one publisher module for each application. */
export class CrossDomainRules {
  readonly #publisher: Publisher;
  readonly #fallback: CrossDomainsConfig | undefined;
  readonly #cors = new WeakMap<Application, Cors>();

  /** @param fallback for applications without CrossDomains */
  constructor(publisher: Publisher, fallback: CrossDomainsConfig | undefined) {
    this.#publisher = publisher;
    this.#fallback = fallback;
  }

  /** Tests whether pages of other origins can follow a redirect to another host. */
  followRedirects(application: Application): boolean {
    return followsRedirects(this.#of(application));
  }

  /** Tests whether a page that sends a request may send it to other hosts as well. @param origin value of `Origin`, if there is one */
  goElsewhere(application: Application, origin: string | undefined): boolean {
    return allowOrigin(this.#of(application))(origin) !== undefined;
  }

  apply(application: Application, { request, headers }: Exchange, methods = METHODS): void {
    const crossDomains = this.#of(application);
    if (crossDomains === undefined) return;
    let cors = this.#cors.get(application);
    if (cors === undefined) {
      cors = new Cors(crossDomains);
      this.#cors.set(application, cors);
    }
    const { origin, 'access-control-request-headers': requested } = request.headers;
    Object.assign(headers, cors.headers(origin, requested, methods));
  }

  #of({ config: { publishers } }: Application): CrossDomainsConfig | undefined {
    const { llhls, hls } = publishers;
    // recordings are on the ports of the others
    const beside = this.#publisher === 'playback' ? (llhls ?? hls)?.crossDomains : undefined;
    return publishers[this.#publisher]?.crossDomains ?? beside ?? this.#fallback;
  }
}
