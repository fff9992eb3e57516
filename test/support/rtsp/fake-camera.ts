import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

/** A request as it came, read without the code that is tested. */
export interface CameraRequest {
  readonly method: string;
  readonly uri: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Which connection it came over, counted from 0. */
  readonly connection: number;
}

/** The rest of an answer behind `RTSP/1.0 `, without CSeq; a whole text when it begins with `RTSP/`; `''`: none. */
type Answer = string | undefined;

export interface CameraScript {
  readonly sdp: string;
  /** What is answered otherwise than usual. */
  readonly answer?: (request: CameraRequest, camera: FakeCamera) => Answer;
}

/** H.264 of 160x90 and G.711, as a camera would tell of them. */
export const CAMERA_SDP = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=camera',
  't=0 0',
  'a=control:*',
  'm=video 0 RTP/AVP 96',
  'a=rtpmap:96 H264/90000',
  'a=fmtp:96 packetization-mode=1',
  'a=control:trackID=0',
  'm=audio 0 RTP/AVP 8',
  'a=control:trackID=1',
  '',
].join('\r\n');

/** An RTSP server that answers and sends what a test tells it to. */
export class FakeCamera {
  readonly requests: CameraRequest[] = [];
  readonly sockets: Socket[] = [];
  readonly #server: Server;
  readonly #script: CameraScript;

  static async start(t: ExecutionContext, script: Partial<CameraScript> = {}): Promise<FakeCamera> {
    const camera = new FakeCamera({ sdp: CAMERA_SDP, ...script });
    camera.#server.listen(0, '127.0.0.1');
    await once(camera.#server, 'listening');
    t.teardown(() => camera.stop());
    return camera;
  }

  private constructor(script: CameraScript) {
    this.#script = script;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path = 'live', user = ''): string {
    return `rtsp://${user}127.0.0.1:${this.port}/${path}`;
  }

  methods(): string[] {
    return this.requests.map(({ method }) => method);
  }

  /** Sends bytes over the connection that came last. */
  send(data: string | Buffer): void {
    this.sockets.at(-1)?.write(data);
  }

  /** Sends an RTP or RTCP packet over the connection that came last. */
  media(channel: number, data: Buffer): void {
    const head = Buffer.of(0x24, channel, data.length >> 8, data.length & 255);
    this.send(Buffer.concat([head, data]));
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    const connection = this.sockets.push(socket) - 1;
    let text = '';
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.on('data', (bytes: Buffer) => {
      // reports of receivers come between the requests: their bytes are of no request
      text += bytes.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const request = readRequest(text.slice(0, end), connection);
        text = text.slice(end + 4);
        if (request === undefined) continue;
        this.requests.push(request);
        this.#answer(socket, request);
      }
    });
  }

  #answer(socket: Socket, request: CameraRequest): void {
    const answer = this.#script.answer?.(request, this) ?? this.#usual(request);
    if (answer === '') return;
    const [first = '', ...rest] = answer.split('\r\n');
    socket.write(
      answer.startsWith('RTSP/')
        ? answer
        : [`RTSP/1.0 ${first}`, `CSeq: ${request.headers['cseq']}`, ...rest].join('\r\n'),
    );
  }

  #usual({ method, uri, headers }: CameraRequest): string {
    const { sdp } = this.#script;
    if (method === 'OPTIONS')
      return '200 OK\r\nPublic: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n\r\n';
    if (method === 'DESCRIBE') {
      return `200 OK\r\nContent-Base: ${uri}/\r\nContent-Type: application/sdp\r\nContent-Length: ${Buffer.byteLength(sdp)}\r\n\r\n${sdp}`;
    }
    if (method === 'SETUP')
      return `200 OK\r\nSession: 12345678;timeout=60\r\nTransport: ${headers['transport']}\r\n\r\n`;
    return '200 OK\r\nSession: 12345678\r\n\r\n';
  }
}

function readRequest(head: string, connection: number): CameraRequest | undefined {
  const found = /([A-Z_]+) (\S+) RTSP\/1\.0\r\n([\s\S]*)$/.exec(`${head}\r\n`);
  if (found === null) return undefined;
  const [, method = '', uri = '', lines = ''] = found;
  const headers = Object.fromEntries(
    [...lines.matchAll(/^([\w-]+): (.*?)\r?$/gm)].map(([, name = '', value = '']) => [name.toLowerCase(), value]),
  );
  return { method, uri, headers, connection };
}
