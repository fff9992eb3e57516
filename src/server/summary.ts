import type { ServerConfig } from '../config/model.ts';
import { udpUrl } from '../config/udp-ports.ts';
import type { PortRange } from '../config/values.ts';
import { hostInUrl } from '../lib/address.ts';
import type { Addresses, PortPair } from './addresses.ts';

export interface SummaryOptions {
  readonly version: string;
  /** Access token of the API if it was generated at this start: it is shown nowhere else. */
  readonly token?: string;
  readonly demo?: { readonly app: string; readonly stream: string };
  readonly color: boolean;
}

/** Whether output to a stream may have colour (https://no-color.org). */
export function wantsColor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
}

type Row = readonly [label: string, value: string, hint?: string];

/** Text that `npm start` prints: listeners, and how to publish and play. */
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
  if (shown.length === 0) lines.push('    No port is open: the configuration has no module with a port.', '');
  return lines.join('\n');
}

const YOUR_STREAM = 'mystream';

interface Example {
  readonly vhost: string;
  readonly host: string;
  readonly app: string;
  readonly stream: string;
}

/** Names for examples: a host that is served, and an application that accepts streams. */
function example(config: ServerConfig, demo: SummaryOptions['demo']): Example {
  const [vhost] = config.virtualHosts;
  const application = vhost?.applications.find(({ name, providers }) => name !== '*' && providers.rtmp !== undefined);
  return {
    vhost: vhost?.name ?? 'default',
    host: hostOf(config, vhost?.host.names),
    app: demo?.app ?? application?.name ?? 'app',
    stream: demo?.stream ?? YOUR_STREAM,
  };
}

const EVERY_ADDRESS = ['*', '0.0.0.0', '::'];

/** Host of a URL: the first name without wildcards, else a listening address. */
function hostOf({ ip }: ServerConfig, names: readonly string[] = []): string {
  const named = names.map(hostInUrl).find((name) => !/[*?]/.test(name) && URL.canParse(`http://${name}`));
  if (named !== undefined) return named;
  if (ip.some((address) => EVERY_ADDRESS.includes(address))) return 'localhost';
  return hostInUrl(ip.find((address) => address === '127.0.0.1' || address === '::1') ?? ip[0] ?? 'localhost');
}

/** URL of the player page: on the port of LL-HLS, else of WebRTC. */
function pageUrl({ llhls, webrtc }: Addresses, { host, app, stream }: Example): string | undefined {
  const base = url('http', host, llhls) ?? url('http', host, webrtc);
  return base && `${base}/${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;
}

/** URLs by module where clients reach a node, at the address that it advertises in a cluster. */
export function clientAddresses(config: ServerConfig, addresses: Addresses): Record<string, string[]> {
  const { rtmp, rtmpPlay, mpegts, llhls, hls, flv, webrtc, ovt, srt, srtPlay, rtsp, rtspPlay, api, whip } = addresses;
  const advertised = config.cluster?.node.advertiseAddress;
  const host = advertised === undefined ? hostOf(config) : hostInUrl(advertised);
  const urls = (scheme: 'http' | 'ws', ports: PortPair | undefined): string[] =>
    [url(scheme, host, ports && { port: ports.port }), url(scheme, host, ports && { tlsPort: ports.tlsPort })].filter(
      (one) => one !== undefined,
    );
  return {
    ...(rtmp !== undefined && { rtmp: rtmpOrigins(rtmp, host, true) }),
    ...(rtmpPlay !== undefined && { rtmpPlay: rtmpOrigins(rtmpPlay, host, true) }),
    ...(mpegts !== undefined && { mpegts: mpegts.map((ports) => udpUrl(ports, host)) }),
    ...(llhls !== undefined && { llhls: urls('http', llhls) }),
    ...(hls !== undefined && { hls: urls('http', hls) }),
    ...(flv !== undefined && { flv: urls('http', flv) }),
    ...(webrtc !== undefined && { webrtc: urls('ws', webrtc) }),
    ...(whip !== undefined && { whip: urls('http', whip) }),
    ...(ovt !== undefined && { ovt: [`ovt://${host}:${ovt}`] }),
    ...(srt !== undefined && { srt: srt.map(({ first }) => `srt://${host}:${first}`) }),
    ...(srtPlay !== undefined && { srtPlay: srtPlay.map(({ first }) => `srt://${host}:${first}`) }),
    ...(rtsp !== undefined && { rtsp: rtspOrigins(rtsp, host) }),
    ...(rtspPlay !== undefined && { rtspPlay: rtspOrigins(rtspPlay, host) }),
    ...(api !== undefined && { api: urls('http', api) }),
  };
}

function watchRows(addresses: Addresses, names: Example): Row[] {
  const { llhls, hls, flv, webrtc, ovt, srtPlay, rtmpPlay = {}, rtspPlay = {}, ice } = addresses;
  const page = pageUrl(addresses, names);
  const path = `/${encodeURIComponent(names.app)}/${encodeURIComponent(names.stream)}`;
  const rows: Row[] = page === undefined ? [] : [['Page', page, `${new URL('/', page)} lists what is live`]];
  const playlists = url('http', names.host, llhls);
  if (playlists !== undefined) rows.push(['LL-HLS', `${playlists}${path}/llhls.m3u8`]);
  const segments = url('http', names.host, hls);
  if (segments !== undefined) rows.push(['HLS', `${segments}${path}/ts:playlist.m3u8`, 'MPEG-TS']);
  const tags = url('http', names.host, flv);
  if (tags !== undefined) rows.push(['HTTP-FLV', `${tags}${path}.flv`, '.ts for MPEG-TS']);
  const signalling = url('http', names.host, webrtc);
  if (signalling !== undefined) {
    rows.push(['WebRTC', `${signalling}${path}?direction=whep`, 'WHEP']);
    rows.push(['', `${url('ws', names.host, webrtc)}${path}`, 'OvenPlayer']);
    if (ice.length > 0) rows.push(['', `media on ${ice.join(', ')}`]);
  }
  if (ovt !== undefined) rows.push(['OVT', `ovt://${names.host}:${ovt}${path}`, 'for edges']);
  rows.push(...rtspRows(rtspPlay, names));
  for (const origin of rtmpOrigins(rtmpPlay, names.host))
    rows.push([origin.startsWith('rtmps') ? 'RTMPS' : 'RTMP', `${origin}${path}`]);
  return [...rows, ...srtRows(srtPlay, names), ...secureRows([llhls, hls, flv, webrtc], names.host)];
}

function rtspRows(ports: PortPair, { host, app, stream }: Example): Row[] {
  const path = `/${encodeURIComponent(app)}/${encodeURIComponent(stream)}`;
  return rtspOrigins(ports, host).map((origin) => [origin.startsWith('rtsps') ? 'RTSPS' : 'RTSP', `${origin}${path}`]);
}

/** Origins of RTSP, the plain one first. */
function rtspOrigins({ port, tlsPort }: PortPair, host: string): string[] {
  return [
    ...(port === undefined ? [] : [`rtsp://${host}:${port}`]),
    ...(tlsPort === undefined ? [] : [`rtsps://${host}:${tlsPort}`]),
  ];
}

function srtRows(ports: readonly PortRange[] = [], { vhost, host, app, stream }: Example): Row[] {
  const [port] = ports;
  return port === undefined
    ? []
    : [['SRT', `srt://${host}:${port.first}?streamid=${[vhost, app, stream].map(encodeURIComponent).join('/')}`]];
}

/** Secure ports beside plain ones, whose URLs the other rows show. */
function secureRows(all: readonly (PortPair | undefined)[], host: string): Row[] {
  const beside = all.flatMap((ports) => (ports?.port === undefined ? [] : [ports.tlsPort ?? []].flat()));
  const origins = [...new Set(beside)].map((tlsPort) => url('http', host, { tlsPort }));
  return origins.length === 0 ? [] : [['TLS', origins.join(', '), 'the same, encrypted']];
}

function publishRows({ rtmp = {}, rtsp = {}, srt, srtla, mpegts = [], whip }: Addresses, names: Example): Row[] {
  return [
    ...rtmpRows(rtmp, names),
    ...whipRows(whip, names),
    ...srtRows(srt, names),
    ...srtRows(srtla, names).map(([, url]): Row => ['SRTLA', url.replace('srt', 'srtla'), 'bonded links']),
    ...rtspRows(rtsp, names),
    ...mpegts.map((ports): Row => [
      'MPEG-TS',
      udpUrl(ports, names.host),
      'each port a stream of Providers/MPEGTS/StreamMap',
    ]),
  ];
}

function whipRows(whip: PortPair | undefined, { host, app, stream }: Example): Row[] {
  const endpoint = url('http', host, whip);
  return endpoint === undefined ? [] : [['WHIP', `${endpoint}/${encodeURIComponent(app)}/${stream}?direction=whip`]];
}

function rtmpRows(rtmp: PortPair, { host, app, stream }: Example): Row[] {
  const [server, ...secure] = rtmpOrigins(rtmp, host).map((origin) => `${origin}/${encodeURIComponent(app)}`);
  if (server === undefined) return [];
  return [
    [server.startsWith('rtmps') ? 'RTMPS' : 'RTMP', `${server}/${stream}`],
    ...secure.map((one): Row => ['RTMPS', `${one}/${stream}`]),
    ['OBS', `Service: Custom, Server: ${server}, Stream Key: ${stream}`],
    ['', 'for the least delay: keyframe interval 1 s, tune zerolatency, no B-frames'],
  ];
}

/** Origins, the plain one first. @param full names the port even where it is the default */
function rtmpOrigins({ port, tlsPort }: PortPair, host: string, full = false): string[] {
  const origin = (scheme: string, number: number | undefined, usual: number): string[] =>
    number === undefined ? [] : [`${scheme}://${host}${number === usual && !full ? '' : `:${number}`}`];
  return [...origin('rtmp', port, 1935), ...origin('rtmps', tlsPort, 443)];
}

function manageRows({ api, metrics }: Addresses, host: string, token: string | undefined): Row[] {
  const rows = apiRows(api, host, token);
  const open = url('http', host, { port: metrics });
  return open === undefined ? rows : [...rows, ['Metrics', `${open}/metrics`]];
}

function apiRows(api: PortPair | undefined, host: string, token: string | undefined): Row[] {
  const base = url('http', host, api);
  if (base === undefined) return [];
  const rows: Row[] = [['Console', `${base}/console`], ['API', `${base}/v1`], ...secureRows([api], host)];
  if (token !== undefined) {
    rows.push(['Token', token, 'generated for this run: set KILN_ACCESS_TOKEN to keep one']);
    rows.push(['', `curl -u ${token} ${base}/v1/vhosts`]);
  }
  return rows;
}

/** Origin of a listener: the plain port where there is one, else the secure one. */
function url(scheme: 'http' | 'ws', host: string, ports: PortPair | undefined): string | undefined {
  if (ports?.port !== undefined) return `${scheme}://${host}${ports.port === 80 ? '' : `:${ports.port}`}`;
  if (ports?.tlsPort !== undefined) return `${scheme}s://${host}${ports.tlsPort === 443 ? '' : `:${ports.tlsPort}`}`;
  return undefined;
}

const STYLES = { bold: '1', dim: '2', accent: '1;38;5;208' } as const;

function painter(color: boolean): (style: keyof typeof STYLES, text: string) => string {
  return color ? (style, text) => `\x1b[${STYLES[style]}m${text}\x1b[0m` : (_style, text) => text;
}
