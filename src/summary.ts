import type { ServerConfig } from './config/model.ts';
import { hostInUrl } from './config/values.ts';

/** The ports of an HTTP listener, as it got them; absent: not listening. */
export interface HttpPorts {
  readonly port?: number;
  readonly tlsPort?: number;
}

/** Where the modules listen; absent: off. */
export interface Addresses {
  readonly rtmp?: number;
  readonly llhls?: HttpPorts;
  readonly webrtc?: HttpPorts;
  readonly ovt?: number;
  /** ICE candidates, as `port/protocol`. */
  readonly ice: readonly string[];
  readonly api?: HttpPorts;
}

export interface SummaryOptions {
  readonly version: string;
  /** The access token of the API, when it was made up at this start: it is told nowhere else. */
  readonly token?: string;
  /** What the built-in publisher publishes. */
  readonly demo?: { readonly app: string; readonly stream: string };
  readonly color: boolean;
}

/** True when a stream is a terminal that may be written in colour (https://no-color.org). */
export function wantsColor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
}

type Row = readonly [label: string, value: string, hint?: string];

/** What `npm start` prints: what listens where, how to publish and how to play. */
export function summary(config: ServerConfig, addresses: Addresses, options: SummaryOptions): string {
  const { version, token, demo, color } = options;
  const paint = painter(color);
  const names = example(config, demo);
  const sections: readonly (readonly [title: string, rows: readonly Row[]])[] = [
    ['Watch', watchRows(addresses, names)],
    ['Publish', publishRows(addresses, { ...names, stream: YOUR_STREAM })],
    ['Manage', manageRows(addresses, hostOf(config, config.managers?.host.names), token)],
  ];
  const shown = sections.filter(([, rows]) => rows.length > 0);
  const width = Math.max(0, ...shown.flatMap(([, rows]) => rows.map(([label]) => label.length)));
  const lines = ['', `  ${paint('accent', 'Kiln')} ${version}`, ''];
  const page = pageUrl(addresses, names);
  if (demo !== undefined && page !== undefined) {
    lines.push(`    ${paint('bold', 'Open')}  ${paint('accent', `${page}?mode=both`)}`, '');
  }
  for (const [title, rows] of shown) {
    lines.push(`    ${paint('bold', title)}`);
    for (const [label, value, hint] of rows) {
      const line = `      ${paint('dim', label.padEnd(width))}  ${value}`;
      lines.push(hint === undefined ? line : `${line}  ${paint('dim', `(${hint})`)}`);
    }
    lines.push('');
  }
  if (shown.length === 0) lines.push('    Nothing listens: no module has a port in the configuration.', '');
  return lines.join('\n');
}

const YOUR_STREAM = 'mystream';

interface Example {
  readonly host: string;
  readonly app: string;
  readonly stream: string;
}

/** Names to show: a host that answers, and an application that takes streams. */
function example(config: ServerConfig, demo: SummaryOptions['demo']): Example {
  const [vhost] = config.virtualHosts;
  const application = vhost?.applications.find(({ name, providers }) => name !== '*' && providers.rtmp !== undefined);
  return {
    host: hostOf(config, vhost?.host.names),
    app: demo?.app ?? application?.name ?? 'app',
    stream: demo?.stream ?? YOUR_STREAM,
  };
}

const EVERY_ADDRESS = ['*', '0.0.0.0', '::'];

/** Host of a URL: the first name without wildcards; without one, an address that is listened on. */
function hostOf({ ip }: ServerConfig, names: readonly string[] = []): string {
  const named = names.map(hostInUrl).find((name) => !/[*?]/.test(name) && URL.canParse(`http://${name}`));
  if (named !== undefined) return named;
  if (ip.some((address) => EVERY_ADDRESS.includes(address))) return 'localhost';
  return hostInUrl(ip.find((address) => address === '127.0.0.1' || address === '::1') ?? ip[0] ?? 'localhost');
}

/** The player page: on the port of LL-HLS, else of WebRTC. */
function pageUrl({ llhls, webrtc }: Addresses, { host, app, stream }: Example): string | undefined {
  const base = url('http', host, llhls) ?? url('http', host, webrtc);
  return base && `${base}/${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;
}

/** Where clients reach a node: URLs by module, of the address that it advertises in a cluster. */
export function clientAddresses(config: ServerConfig, { rtmp, llhls, webrtc, ovt, api }: Addresses): Record<string, string[]> {
  const advertised = config.cluster?.node.advertiseAddress;
  const host = advertised === undefined ? hostOf(config) : hostInUrl(advertised);
  const urls = (scheme: 'http' | 'ws', ports: HttpPorts | undefined): string[] =>
    [url(scheme, host, ports && { port: ports.port }), url(scheme, host, ports && { tlsPort: ports.tlsPort })]
      .filter((one) => one !== undefined);
  return {
    ...(rtmp !== undefined && { rtmp: [`rtmp://${host}:${rtmp}`] }),
    ...(llhls !== undefined && { llhls: urls('http', llhls) }),
    ...(webrtc !== undefined && { webrtc: urls('ws', webrtc) }),
    ...(ovt !== undefined && { ovt: [`ovt://${host}:${ovt}`] }),
    ...(api !== undefined && { api: urls('http', api) }),
  };
}

function watchRows(addresses: Addresses, names: Example): Row[] {
  const { llhls, webrtc, ovt, ice } = addresses;
  const page = pageUrl(addresses, names);
  if (page === undefined) return [];
  const path = new URL(page).pathname;
  const rows: Row[] = [['Page', page, `${new URL('/', page)} lists what is live`]];
  const playlists = url('http', names.host, llhls);
  if (playlists !== undefined) rows.push(['LL-HLS', `${playlists}${path}/llhls.m3u8`]);
  const signalling = url('http', names.host, webrtc);
  if (signalling !== undefined) {
    rows.push(['WebRTC', `${signalling}${path}?direction=whep`, 'WHEP']);
    rows.push(['', `${url('ws', names.host, webrtc)}${path}`, 'OvenPlayer']);
    if (ice.length > 0) rows.push(['', `media on ${ice.join(', ')}`]);
  }
  if (ovt !== undefined) rows.push(['OVT', `ovt://${names.host}:${ovt}${path}`, 'for edges']);
  return [...rows, ...secureRows([llhls, webrtc], names.host)];
}

/** The secure ports beside plain ones, which the other rows tell of. */
function secureRows(all: readonly (HttpPorts | undefined)[], host: string): Row[] {
  const beside = all.flatMap((ports) => (ports?.port === undefined ? [] : [ports.tlsPort ?? []].flat()));
  const origins = [...new Set(beside)].map((tlsPort) => url('http', host, { tlsPort }));
  return origins.length === 0 ? [] : [['TLS', origins.join(', '), 'the same, encrypted']];
}

function publishRows({ rtmp }: Addresses, { host, app, stream }: Example): Row[] {
  if (rtmp === undefined) return [];
  const server = `rtmp://${host}${rtmp === 1935 ? '' : `:${rtmp}`}/${encodeURIComponent(app)}`;
  return [
    ['RTMP', `${server}/${stream}`],
    ['OBS', `Service: Custom, Server: ${server}, Stream Key: ${stream}`],
    ['', 'for the least delay: keyframe interval 1 s, tune zerolatency, no B-frames'],
  ];
}

function manageRows({ api }: Addresses, host: string, token: string | undefined): Row[] {
  const base = url('http', host, api);
  if (base === undefined) return [];
  const rows: Row[] = [['API', `${base}/v1`], ...secureRows([api], host)];
  if (token !== undefined) {
    rows.push(['Token', token, 'made up for this run: set KILN_ACCESS_TOKEN to keep one']);
    rows.push(['', `curl -u ${token} ${base}/v1/vhosts`]);
  }
  return rows;
}

/** Origin of a listener: the plain port where there is one, else the secure one. */
function url(scheme: 'http' | 'ws', host: string, ports: HttpPorts | undefined): string | undefined {
  if (ports?.port !== undefined) return `${scheme}://${host}${ports.port === 80 ? '' : `:${ports.port}`}`;
  if (ports?.tlsPort !== undefined) return `${scheme}s://${host}${ports.tlsPort === 443 ? '' : `:${ports.tlsPort}`}`;
  return undefined;
}

const STYLES = { bold: '1', dim: '2', accent: '1;38;5;208' } as const;

function painter(color: boolean): (style: keyof typeof STYLES, text: string) => string {
  return color ? (style, text) => `\x1b[${STYLES[style]}m${text}\x1b[0m` : (_style, text) => text;
}
