import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StreamInfo } from '../../../src/stats/stream-schema.ts';
import type { Host } from '../network/hosts.ts';
import { isRunning, processTree } from '../load/usage.ts';
import { refuseWarnings } from '../programs/node-warnings.ts';
import { freePorts } from '../network/ports.ts';
import { Limiter } from '../../../src/lib/limiter.ts';
import { until } from '../time/until.ts';

const ROOT = join(import.meta.dirname, '../../..');
export const TOKEN = 'test-token';

export interface KilnPorts {
  readonly rtmp: number;
  readonly http: number;
  readonly api: number;
  readonly ice: readonly [number, number];
  /** TLS ports of the publishers, of the API and of RTMP, where there is a certificate. */
  readonly https?: number;
  readonly apiTls?: number;
  readonly rtmps?: number;
  readonly ovt?: number;
  readonly srt?: number;
  readonly srtPlay?: number;
  readonly rtspPlay?: number;
}

export interface KilnOptions {
  /** Inner XML of the application's `LLHLS` element. */
  readonly llhls?: string;
  /** Inner XML of its `HLS` element; absent: there is none. */
  readonly hls?: string;
  /** Inner XML of `RTMP` in the application's providers. */
  readonly rtmp?: string;
  /** Inner XML of `WebRTC` in the application's publishers. */
  readonly webrtc?: string;
  /** The application's streams can be pulled from this server over OVT, and it pulls from others. */
  readonly ovt?: boolean;
  /**
   * SRT, in and out: further XML of Bind/Providers/SRT, of Bind/Publishers/SRT and of the application's provider, and
   * another port to publish to.
   */
  readonly srt?: { readonly in?: string; readonly out?: string; readonly provider?: string; readonly port?: string };
  /** RTSP players: further XML of Bind/Publishers/RTSP. */
  readonly rtsp?: string;
  /** RTSP publishers come in where RTSP players do. */
  readonly rtspIn?: boolean;
  /** `IP` elements; loopback's of IPv4 unless given. */
  readonly ip?: string;
  /** WebRTC publishers come in where WebRTC players do; further XML of the application's provider for them. */
  readonly whip?: boolean | string;
  /** Further elements of `Providers`: under `Bind`, and of the application. */
  readonly bindProviders?: string;
  /** FLV and MPEG-TS can be played over HTTP, from the ports of LL-HLS. */
  readonly flv?: boolean;
  /** RTMP can be played from the ports that it is published to. */
  readonly rtmpPlay?: boolean;
  readonly providers?: string;
  /** Further elements of the application's `Publishers`. */
  readonly publishers?: string;
  /** Elements after the application's `Publishers`. */
  readonly application?: string;
  /** Further elements of `Applications`. */
  readonly applications?: string;
  /** Further elements of `Modules`. */
  readonly modules?: string;
  /** Elements of `Server` before its virtual hosts. */
  readonly server?: string;
  /** Elements of the management API. */
  readonly api?: string;
  /** Where the API keeps what it creates. */
  readonly storage?: string;
  /** Name that the virtual host `default` answers to; `*` unless given. */
  readonly hostName?: string;
  /** Certificate of the API and of the virtual host `default`. */
  readonly tls?: { readonly certPath: string; readonly keyPath: string };
  /** Elements of `VirtualHost` before its applications. */
  readonly vhost?: string;
  /** Address of the ICE candidates. */
  readonly iceAddress?: string;
  /** Checkout that it runs from; this one unless given. */
  readonly root?: string;
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Where it runs; on this machine unless given. */
  readonly host?: Host | undefined;
  /** It leads a process group, as what is started in a terminal does: see `signalGroup`. */
  readonly ownGroup?: boolean;
}

type Twelve<T> = [T, T, T, T, T, T, T, T, T, T, T, T];

/** A Server.xml on given ports of the loopback interface. */
export function serverXml(ports: KilnPorts, options: KilnOptions = {}): string {
  const {
    llhls = '',
    hls,
    rtmp = '',
    webrtc = '',
    publishers = '',
    application = '',
    applications = '',
    vhost = '',
    server = '',
    modules = '',
    iceAddress = '127.0.0.1',
    hostName = '*',
    storage,
    api = '',
    ovt = false,
    whip = false,
    bindProviders = '',
    flv = false,
    rtmpPlay = false,
    providers = '',
    srt,
    rtsp,
    rtspIn = false,
    ip = `<IP>${options.host?.address ?? '127.0.0.1'}</IP>`,
  } = options;
  const tls =
    options.tls && `<TLS><CertPath>${options.tls.certPath}</CertPath><KeyPath>${options.tls.keyPath}</KeyPath></TLS>`;
  const tlsPort = (port: number | undefined) =>
    tls === undefined || port === undefined ? '' : `<TLSPort>${port}</TLSPort>`;
  const srtBind = (port: number | string | undefined, more = ''): string =>
    srt === undefined ? '' : `<SRT><Port>${port}</Port>${more}</SRT>`;
  const srtPorts = srt?.port === undefined ? ports.srt : `${ports.srt},${srt.port}`;
  const rtspBind = `<RTSP><Port>${ports.rtspPlay}</Port>${rtsp ?? ''}</RTSP>`;
  const rtmpBind = `<RTMP><Port>${ports.rtmp}</Port>${tlsPort(ports.rtmps)}</RTMP>`;
  const [firstIce, lastIce] = ports.ice;
  const candidates = [firstIce, lastIce]
    .flatMap((port) =>
      ['udp', 'tcp'].map((protocol) => `<IceCandidate>${iceAddress}:${port}/${protocol}</IceCandidate>`),
    )
    .join('');
  const signalling = `<WebRTC><Signalling><Port>${ports.http}</Port>${tlsPort(ports.https)}</Signalling><IceCandidates>${candidates}</IceCandidates></WebRTC>`;
  return `<?xml version="1.0"?>
<Server version="8">
  <Name>test</Name><Type>origin</Type>${ip}
  <Bind>
    <Managers><API><Port>${ports.api}</Port>${tlsPort(ports.apiTls)}</API></Managers>
    <Providers>${rtmpBind}${whip === false ? '' : signalling}${srtBind(srtPorts, srt?.in)}${rtspIn ? rtspBind : ''}${bindProviders}</Providers>
    <Publishers>${rtsp === undefined ? '' : rtspBind}${srtBind(ports.srtPlay, srt?.out)}${ports.ovt === undefined ? '' : `<OVT><Port>${ports.ovt}</Port></OVT>`}${rtmpPlay ? rtmpBind : ''}${flv ? `<FLV><Port>${ports.http}</Port>${tlsPort(ports.https)}</FLV>` : ''}
      <LLHLS><Port>${ports.http}</Port>${tlsPort(ports.https)}</LLHLS>
      ${hls === undefined ? '' : `<HLS><Port>${ports.http}</Port></HLS>`}<Thumbnail><Port>${ports.http}</Port></Thumbnail>
      ${signalling}
    </Publishers>
  </Bind>
  <Modules><ERTMP><Enable>true</Enable></ERTMP>${modules}</Modules>
  <Managers>
    <Host><Names><Name>*</Name></Names>${tls ?? ''}</Host>
    <API><AccessToken>\${env:KILN_ACCESS_TOKEN}</AccessToken>${storage === undefined ? '' : `<Storage><Path>${storage}</Path></Storage>`}${api}</API>
  </Managers>${server}
  <VirtualHosts>
    <VirtualHost>
      <Name>default</Name><Host><Names><Name>${hostName}</Name></Names>${tls ?? ''}</Host>${vhost}
      <Applications>
        <Application>
          <Name>app</Name><Type>live</Type>
          <Providers><RTMP>${rtmp}</RTMP>${rtspIn ? '<RTSP/>' : ''}${ovt ? '<OVT/>' : ''}${srt === undefined ? '' : `<SRT>${srt.provider ?? ''}</SRT>`}${whip === false ? '' : `<WebRTC><Timeout>10000</Timeout>${whip === true ? '' : whip}</WebRTC>`}${providers}</Providers>
          <Publishers><LLHLS>${llhls}</LLHLS><WebRTC>${webrtc}</WebRTC>${hls === undefined ? '' : `<HLS>${hls}</HLS>`}${ovt ? '<OVT/>' : ''}${srt === undefined ? '' : '<SRT/>'}${rtsp === undefined ? '' : '<RTSP/>'}${rtmpPlay ? '<RTMP/>' : ''}${flv ? '<FLV/>' : ''}${publishers}</Publishers>${application}
        </Application>${applications}
      </Applications>
    </VirtualHost>
  </VirtualHosts>
</Server>
`;
}

export interface ApiAnswer<Response> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { readonly statusCode: number; readonly message: string; readonly response: Response };
}

/** Whether every encoder has told that it works, or that it does not. */
function isSettled({ tracks }: StreamInfo['outputs'][number]): boolean {
  return tracks.every(
    ({ type, video, audio }) => type === 'Data' || type === 'Subtitle' || (video ?? audio)?.codecStatus !== undefined,
  );
}

/** None outlives its tests, also when they are given up. */
const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** A start is seconds of work: with all of a test file at once none would be ready for long, and no test over. */
const starts = new Limiter(2);

/** A server process of its own, on free ports. */
export class Kiln {
  readonly ports: KilnPorts;
  readonly #folder: string;
  readonly #options: KilnOptions;
  #child: ChildProcess;
  /** The process has ended, and all that it said was read. */
  #ended = false;
  #stdout = '';
  #stderr = '';

  private constructor(ports: KilnPorts, folder: string, options: KilnOptions) {
    this.ports = ports;
    this.#folder = folder;
    this.#options = options;
    this.#child = this.#spawn();
  }

  /** Starts a server, when others that are being started leave it room, and waits until it is ready. */
  static start(options: KilnOptions = {}): Promise<Kiln> {
    return starts.run(() => Kiln.#start(options));
  }

  static async #start(options: KilnOptions): Promise<Kiln> {
    const [rtmp, http, api, firstIce, lastIce, https, apiTls, ovt, rtmps, srt, srtPlay, rtspPlay] = freePorts(
      12,
    ) as Twelve<number>;
    const ports: KilnPorts = {
      rtmp,
      http,
      api,
      ice: [firstIce, lastIce],
      https,
      apiTls,
      ovt,
      rtmps,
      srt,
      srtPlay,
      rtspPlay,
    };
    const folder = await mkdtemp(join(tmpdir(), 'kiln-test-'));
    await writeFile(join(folder, 'Server.xml'), serverXml(ports, options));
    const kiln = new Kiln(ports, folder, options);
    try {
      await kiln.#ready();
    } catch (error) {
      await kiln.stop();
      throw error;
    }
    return kiln;
  }

  /**
   * Kills the process without warning and starts another one on the same files, when what it had started has gone, too.
   * @param changed what its Server.xml has otherwise from now on
   */
  async restart(changed?: KilnOptions): Promise<void> {
    const tree = processTree(this.pid);
    this.signal('SIGKILL');
    await this.exited();
    await until('its children have ended', () => !tree.some(isRunning));
    if (changed !== undefined)
      await writeFile(join(this.#folder, 'Server.xml'), serverXml(this.ports, { ...this.#options, ...changed }));
    this.#child = this.#spawn();
    await this.#ready();
  }

  #spawn(): ChildProcess {
    const { args = [], env, ownGroup, host, root = ROOT } = this.#options;
    const [program = '', ...before] = [...(host?.command ?? []), join(root, 'deploy/start')];
    const child = spawn(program, [...before, '--config', join(this.#folder, 'Server.xml'), ...args], {
      detached: ownGroup,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, KILN_ACCESS_TOKEN: TOKEN, ...env },
    });
    running.add(child);
    child.once('exit', () => running.delete(child));
    this.#ended = false;
    child.once('close', () => (this.#ended = true));
    child.stdout?.on('data', (chunk: Buffer) => (this.#stdout += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()));
    return child;
  }

  async #ready(): Promise<void> {
    await until('the server is ready', async () => {
      if (!this.running) {
        await this.exited();
        throw new Error(`the server ended: ${this.#stderr}`);
      }
      const answer = await fetch(`http://${this.address}:${this.ports.api}/readyz`).catch(() => undefined);
      return answer?.status === 200;
    });
  }

  /** Where its Server.xml is. */
  get folder(): string {
    return this.#folder;
  }

  /** Where its ports are. */
  get address(): string {
    return this.#options.host?.address ?? '127.0.0.1';
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What it wrote on standard output, and its log. */
  get stdout(): string {
    return this.#stdout;
  }

  get log(): string {
    return this.#stderr;
  }

  rtmpUrl(stream: string, app = 'app'): string {
    return `rtmp://${this.address}:${this.ports.rtmp}/${app}/${stream}`;
  }

  /**
   * Where a stream is published to over SRT.
   *
   * @param more options; without `&connect_timeout=60000` ffmpeg gives up after 3 s, which a busy machine may take
   */
  srtUrl(stream: string, more = ''): string {
    return `srt://${this.address}:${this.ports.srt}?streamid=default/app/${stream}${more}`;
  }

  /** Where it is played from. */
  srtPlayUrl(stream: string, more = ''): string {
    return `srt://${this.address}:${this.ports.srtPlay}?streamid=default/app/${stream}${more}`;
  }

  /** @param user `name:password@` */
  rtspUrl(stream: string, user = ''): string {
    return `rtsp://${user}${this.address}:${this.ports.rtspPlay}/app/${stream}`;
  }

  ovtUrl(stream: string, app = 'app'): string {
    return `ovt://${this.address}:${this.ports.ovt}/${app}/${stream}`;
  }

  httpUrl(path: string): string {
    return `http://${this.address}:${this.ports.http}${path}`;
  }

  /** Calls the management API; the caller knows what an endpoint answers. */
  async api<Response>(path: string, method = 'GET', body?: unknown): Promise<ApiAnswer<Response>> {
    const answer = await fetch(`http://${this.address}:${this.ports.api}${path}`, {
      method,
      headers: {
        authorization: `Basic ${Buffer.from(this.#options.env?.KILN_ACCESS_TOKEN ?? TOKEN).toString('base64')}`,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return {
      status: answer.status,
      headers: answer.headers,
      body: (await answer.json()) as ApiAnswer<Response>['body'],
    };
  }

  /** What the API tells of a stream of the application `app`. */
  stream(name: string): Promise<ApiAnswer<StreamInfo>> {
    return this.api(`/v1/vhosts/default/apps/app/streams/${name}`);
  }

  /** The same, once it is live. */
  async liveStream(name: string): Promise<StreamInfo> {
    return until(`stream ${name} is live`, async () => {
      const { status, body } = await this.stream(name);
      return (
        status === 200 && body.response.outputs.length > 0 && body.response.outputs.every(isSettled) && body.response
      );
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Signals every process of its group, as a terminal does at Ctrl-C. */
  signalGroup(name: NodeJS.Signals): void {
    process.kill(-this.pid, name);
  }

  /** Its log is whole then. @returns the exit code, null after a signal ended it */
  async exited(): Promise<number | null> {
    await until('the server has ended', () => this.#ended);
    return this.#child.exitCode;
  }

  /**
   * Ends the process without draining, at once if it must, and removes its files.
   * @throws Error when any process of this server wrote a warning of Node
   */
  async stop(): Promise<void> {
    if (this.running) this.signal('SIGINT');
    const kill = setTimeout(() => this.signal('SIGKILL'), 15_000);
    await this.exited();
    clearTimeout(kill);
    await rm(this.#folder, { recursive: true, force: true });
    refuseWarnings(this.#stderr);
  }
}
