/** Schemes of one protocol, in the clear and over TLS. */
const PAIRS: Readonly<Record<string, string>> = {
  http: 'https',
  https: 'http',
  ws: 'wss',
  wss: 'ws',
  rtmp: 'rtmps',
  rtmps: 'rtmp',
};
/** Ports that clients leave out of a URL. */
const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  http: 80,
  https: 443,
  ws: 80,
  wss: 443,
  rtmp: 1935,
  rtmps: 443,
};
const PARTS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*?)(?::(\d+))?(?=[/?#]|$)/i;
/** Runs of percent-encoding without the characters that divide a URL: `# % & + / ?`. */
const ENCODED = /(?:%(?!2[356bf]|3f)[\da-f]{2})+/gi;
/** So many are compared at most. */
const MAX_SPELLINGS = 48;

/**
 * The forms of a URL that its client may have been given, the likeliest first: a balancer may have taken TLS off, a
 * client leaves out default ports, writes the host in capital letters, and percent-encodes what was signed in plain, or
 * undoes it.
 * @param ports that the client may have used where it named none; undefined: the one in the URL
 */
export function* equivalentUrls(url: string, ports?: readonly number[]): Generator<string, void> {
  const seen = new Set<string>();
  for (const located of locations(url, ports)) {
    for (const spelling of [located, decoded(located)]) {
      if (seen.has(spelling)) continue;
      seen.add(spelling);
      yield spelling;
      if (seen.size >= MAX_SPELLINGS) return;
    }
  }
}

function* locations(url: string, ports: readonly number[] | undefined): Generator<string, void> {
  yield url;
  const match = PARTS.exec(url);
  if (match === null) return;
  const [whole, given = '', host = '', port = ''] = match;
  const scheme = given.toLowerCase();
  const rest = url.slice(whole.length);
  const pair = PAIRS[scheme];
  for (const name of pair === undefined ? [scheme] : [scheme, pair]) {
    const standard = DEFAULT_PORTS[name];
    const tried = ports === undefined ? [port] : [port, ...ports, ...(standard === undefined ? [] : [standard])];
    for (const one of tried) yield `${name}://${host.toLowerCase()}:${one}${rest}`;
  }
}

function decoded(url: string): string {
  return url.replace(ENCODED, (run) => {
    try {
      return decodeURIComponent(run);
    } catch {
      return run;
    }
  });
}
