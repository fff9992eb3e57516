import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { until } from '../time/until.ts';

const INPUTS = ['-f', 'lavfi', '-i', 'testsrc2=s=96x64:r=10', '-f', 'lavfi', '-i', 'sine=440:r=48000'];
const VIDEO = [
  '-pix_fmt',
  'yuv420p',
  '-c:v',
  'libx264',
  '-preset',
  'ultrafast',
  '-bf',
  '2',
  '-g',
  '10',
  '-threads',
  '1',
];
/** Arguments of ffmpeg for a stream with a key frame in each second. */
const ENCODED = [...INPUTS, ...VIDEO, '-c:a', 'aac', '-ac', '2'];

const LIVE = ['-f', 'hls', '-hls_time', '1', '-hls_list_size', '6', '-hls_flags', 'delete_segments+temp_file'];

/** Answers a request in another way. @returns false where it does not */
export type Answer = (request: IncomingMessage, response: ServerResponse) => boolean | void;

/** A web server with the files of a folder, which ffmpeg writes. */
export class FileServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'kiln-hls-'));
  /** Requests by their path with the query. */
  readonly asked: string[] = [];
  readonly #children = new Set<ChildProcess>();
  readonly #answer: Answer;
  #server: Server;
  #port = 0;

  private constructor(answer: Answer) {
    this.#answer = answer;
    this.#server = this.#open();
  }

  /** @param answer is asked before the files are looked at */
  static async start(t: ExecutionContext, answer: Answer = () => false): Promise<FileServer> {
    const server = new FileServer(answer);
    await server.listen();
    t.teardown(() => server.#close());
    return server;
  }

  get host(): string {
    return `127.0.0.1:${this.#port}`;
  }

  url(path: string): string {
    return `http://${this.host}/${path}`;
  }

  /** Comes back, at the same address. */
  async listen(): Promise<void> {
    this.#server = this.#open().listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Goes away, in the middle of answers. */
  async leave(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  write(name: string, text: string | Buffer): void {
    writeFileSync(join(this.folder, name), text);
  }

  /** A key of AES-128, for `-hls_key_info_file`. @returns the path of that file */
  key(name: string): string {
    this.write(name, randomBytes(16));
    this.write(`${name}.info`, `${name}\n${join(this.folder, name)}\n`);
    return join(this.folder, `${name}.info`);
  }

  /** Starts ffmpeg in the folder. */
  #ffmpeg(...args: readonly string[]): ChildProcess {
    const child = spawn('ffmpeg', ['-v', 'error', ...args], {
      cwd: this.folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    this.#children.add(child);
    return child;
  }

  /** A stream that has ended. @param options of the muxer of ffmpeg */
  async ended(playlist: string, seconds: number, ...options: readonly string[]): Promise<void> {
    const muxer = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];
    await once(this.#ffmpeg(...ENCODED, '-t', `${seconds}`, ...muxer, ...options, playlist), 'exit');
  }

  /**
   * A stream that has ended, with segments of a second, whose audio is in a playlist of its own: `NAME_0.m3u8`; `NAME_1.m3u8` has the
   * video, and `NAME.m3u8` is the master playlist. @param options of the muxer of ffmpeg
   */
  async separate(name: string, seconds: number, ...options: readonly string[]): Promise<void> {
    const muxer = ['-f', 'hls', '-hls_time', '1', '-hls_playlist_type', 'vod', ...this.#separately(name)];
    await once(this.#ffmpeg(...ENCODED, '-t', `${seconds}`, ...muxer, ...options, `${name}_%v.m3u8`), 'exit');
  }

  #separately(name: string): string[] {
    const streams = 'a:0,agroup:sound,default:yes v:0,agroup:sound';
    const files = ['-hls_segment_filename', `${name}_%v_%d.m4s`, '-hls_fmp4_init_filename', `${name}_%v.mp4`];
    return ['-map', '0:v', '-map', '1:a', '-var_stream_map', streams, '-master_pl_name', `${name}.m3u8`, ...files];
  }

  /** Files that ffmpeg writes. @param args what it encodes, behind a picture and a sound */
  async encode(...args: readonly string[]): Promise<void> {
    await once(this.#ffmpeg(...ENCODED, ...args), 'exit');
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name));
  }

  read(name: string): Buffer {
    return readFileSync(join(this.folder, name));
  }

  /** A live stream, with segments of a second; some of them are there. @param options of the muxer of ffmpeg */
  async live(playlist: string, ...options: readonly string[]): Promise<void> {
    this.#ffmpeg('-re', ...ENCODED, ...LIVE, ...options, playlist);
    await this.#begins(playlist);
  }

  /** A live stream as `separate` has it. */
  async liveSeparate(name: string, ...options: readonly string[]): Promise<void> {
    this.#ffmpeg('-re', ...ENCODED, ...LIVE, ...this.#separately(name), ...options, `${name}_%v.m3u8`);
    for (const number of [0, 1]) await this.#begins(`${name}_${number}.m3u8`);
  }

  async #begins(playlist: string): Promise<void> {
    const path = join(this.folder, playlist);
    await until('there are segments', () => existsSync(path) && readFileSync(path, 'utf8').split('#EXTINF').length > 3);
  }

  #open(): Server {
    return createServer((request, response) => {
      const url = request.url ?? '/';
      this.asked.push(url);
      if (this.#answer(request, response) === true) return;
      this.#send(join(this.folder, new URL(url, 'http://host').pathname), request, response);
    });
  }

  #send(path: string, { headers }: IncomingMessage, response: ServerResponse): void {
    const { size } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (size === undefined) return void response.writeHead(404).end();
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
    const type = path.endsWith('.m3u8') ? 'application/vnd.apple.mpegurl' : 'application/octet-stream';
    response.writeHead(from === undefined ? 200 : 206, { 'Content-Type': type });
    const range = from === undefined ? {} : { start: Number(from), end: Number(to) };
    createReadStream(path, range)
      .on('error', () => response.destroy())
      .pipe(response);
  }

  async #close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    this.#server.closeAllConnections();
    this.#server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
