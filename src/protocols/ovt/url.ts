import { hostFromUrl } from '../../lib/address.ts';

/** `ovt://host[:port]/app/stream[/trackset]`. */
export interface OvtUrl {
  /** Without brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
  readonly app: string;
  readonly stream: string;
  readonly trackset: string | undefined;
  readonly query: URLSearchParams;
  /** As it was given: what requests name. */
  readonly href: string;
}

const DEFAULT_PORT = 9000;
const MAX_LENGTH = 4096;

/** Undefined for what is no such URL. */
export function parseOvtUrl(href: string): OvtUrl | undefined {
  if (href.length > MAX_LENGTH || !URL.canParse(href)) return undefined;
  const { protocol, hostname, port, pathname, searchParams } = new URL(href);
  const steps = pathname.split('/').slice(1).map(decoded);
  const [app, stream, trackset, ...more] = steps;
  if (protocol !== 'ovt:' || hostname === '' || more.length > 0) return undefined;
  if (!app || !stream || trackset === '' || steps.includes(undefined)) return undefined;
  return {
    host: hostFromUrl(hostname).toLowerCase(),
    port: port === '' ? DEFAULT_PORT : Number(port),
    app,
    stream,
    trackset,
    query: searchParams,
    href,
  };
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step);
  } catch {
    return undefined;
  }
}
