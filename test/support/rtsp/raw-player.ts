import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { header, writeRequest, type Fields, type RtspResponse } from '../../../src/protocols/rtsp/message.ts';
import { RtspReader } from '../../../src/protocols/rtsp/reader.ts';
import { until } from '../time/until.ts';

const LIMITS = { headBytes: 1 << 16, bodyBytes: 1 << 20, garbageBytes: 0 };

/** What a client of RTSP sends, one request at a time, and all that it gets. */
export class RawPlayer {
  readonly socket: Socket;
  readonly url: string;
  readonly responses: RtspResponse[] = [];
  /** Interleaved packets, by channel. */
  readonly packets = new Map<number, Buffer[]>();
  /** In the order of arrival: `200` of an answer, `0` of a packet's channel. */
  readonly order: string[] = [];
  session: string | undefined;
  closed = false;
  #sequence = 0;

  private constructor(socket: Socket, url: string) {
    this.socket = socket;
    this.url = url;
    const reader = new RtspReader(LIMITS, {
      response: (response) => {
        this.order.push(`${response.status}`);
        this.responses.push({ ...response, body: Buffer.from(response.body) });
      },
      request: () => {},
      media: (channel, data) => {
        this.order.push(`#${channel}`);
        const all = this.packets.get(channel) ?? [];
        this.packets.set(channel, all);
        all.push(Buffer.from(data));
      },
      garbage: () => {},
    });
    socket.on('data', (data: Buffer) => reader.push(Buffer.from(data), performance.now()));
    socket.on('error', () => {});
    socket.on('close', () => (this.closed = true));
  }

  static async open(t: Pick<ExecutionContext, 'teardown'>, port: number, path = '/app/talk'): Promise<RawPlayer> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    return new RawPlayer(socket, `rtsp://127.0.0.1:${port}${path}`);
  }

  tell(method: string, uri = this.url, fields: Fields = {}, body = ''): void {
    const head = { CSeq: String(++this.#sequence), Session: this.session, ...fields };
    this.socket.write(writeRequest(method, uri, head, body));
  }

  /** The answer to a request. @throws Error when the connection ends instead */
  async ask(method: string, uri = this.url, fields: Fields = {}, body = ''): Promise<RtspResponse> {
    const before = this.responses.length;
    this.tell(method, uri, fields, body);
    await until(`an answer to ${method}`, () => this.responses.length > before || this.closed);
    const answer = this.responses[before];
    if (answer === undefined) throw new Error(`closed instead of an answer to ${method}`);
    this.session ??= this.header(answer, 'session')?.split(';')[0];
    return answer;
  }

  header({ headers }: RtspResponse, name: string): string | undefined {
    return header(headers, name);
  }

  /** Control URLs of the tracks in a description. */
  controls({ body }: RtspResponse): string[] {
    return [...body.toString().matchAll(/a=control:(\S+trackID=\d+)/g)].map(([, url = '']) => url);
  }

  setUp(url: string, transport = 'RTP/AVP/TCP;unicast;interleaved=0-1'): Promise<RtspResponse> {
    return this.ask('SETUP', url, { Transport: transport });
  }

  /** Describes, and sets up all tracks over TCP. @returns their URLs */
  async prepare(): Promise<string[]> {
    const urls = this.controls(await this.ask('DESCRIBE'));
    for (const [i, url] of urls.entries())
      await this.setUp(url, `RTP/AVP/TCP;unicast;interleaved=${2 * i}-${2 * i + 1}`);
    return urls;
  }

  /** Packets of a channel so far. */
  of(channel: number): readonly Buffer[] {
    return this.packets.get(channel) ?? [];
  }
}
