import { once } from 'node:events';
import { get, request as ask, type IncomingMessage, type RequestOptions } from 'node:http';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Playlist } from '../../../src/core/playlist.ts';
import type { Track } from '../../../src/core/track.ts';
import { HttpFlvPublisher } from '../../../src/publishers/http-flv/index.ts';
import { createHttpPort, type HttpPortOptions } from '../../../src/web/http-port.ts';
import { pagesRoutes } from '../../../src/web/pages.ts';
import { createVhost } from '../api/api.ts';
import { aloneWith } from '../cluster/alone.ts';
import { until } from '../time/until.ts';
import { readFlv } from './tags.ts';

export interface FlvSetup {
  /** Of the application's publisher. */
  readonly flv?: object;
  readonly vhost?: object;
  readonly extended?: boolean;
  readonly access?: Partial<AccessOptions>;
  readonly tls?: HttpPortOptions['tls'];
  readonly playlists?: readonly Playlist[];
}

/** Media that a client gets over HTTP. */
export class HttpPlayer {
  readonly response: IncomingMessage;
  #pieces: Buffer[] = [];
  received = 0;
  ended: 'end' | 'close' | undefined;

  constructor(response: IncomingMessage) {
    this.response = response;
    response.on('data', (piece: Buffer) => {
      this.#pieces.push(piece);
      this.received += piece.length;
    });
    response.once('end', () => (this.ended ??= 'end')).once('close', () => (this.ended ??= 'close'));
    response.on('error', () => {});
  }

  get bytes(): Buffer {
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }

  get flv() {
    return readFlv(this.bytes);
  }

  /** First two bytes of each tag of a type. */
  heads(type: number): string[] {
    return this.flv.tags.filter((tag) => tag.type === type).map(({ body }) => body.toString('hex', 0, 2));
  }

  leave(): void {
    this.response.destroy();
  }
}

/** `app` with the publisher, and `closed` without it, on a port of their own. */
export async function openFlv(t: ExecutionContext, setup: FlvSetup = {}) {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [
      { name: 'app', type: 'live', publishers: { flv: setup.flv ?? {} } },
      { name: 'closed', type: 'live', publishers: {} },
    ],
    ...setup.vhost,
  });
  const log = pino({ level: 'silent' });
  const { access, directory, live } = await aloneWith(registry, { log, ...setup.access });
  const publisher = new HttpFlvPublisher({ registry, access, directory, extended: setup.extended ?? true, log });
  const { routes, media } = publisher;
  const port = createHttpPort({ log, ...(setup.tls && { tls: setup.tls }) });
  await port.app.register(routes);
  await port.app.register(pagesRoutes({ registry, live, serves: ['llhls'], media }));
  const at = { host: '127.0.0.1', port: await port.listen(['127.0.0.1'], 0) };
  t.teardown(async () => {
    publisher.close();
    registry.close('the test is over');
    await port.close(0);
  });
  const goLive = (tracks: readonly Track[], name = 'talk', app = 'app') => {
    const application = registry.vhost('default').application(app);
    const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    input.setTracks(tracks);
    const output = application.addOutput(input, name);
    output.setTracks(tracks);
    for (const playlist of setup.playlists ?? []) output.addPlaylist(playlist);
    application.announce(output);
    const write = (...packets: Packet[]): void => packets.forEach((packet) => output.write(packet));
    return { application, input, output, write };
  };
  const play = async (path: string, options: RequestOptions = {}): Promise<HttpPlayer> => {
    const request = get({ ...at, path, agent: false, ...options });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const player = new HttpPlayer(response);
    t.teardown(() => player.leave());
    return player;
  };
  /** Status, headers and body of a request that is answered at once. */
  const call = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const request = ask({ ...at, path, method, headers, agent: false });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const player = new HttpPlayer(response);
    await until('the answer', () => player.ended !== undefined);
    return { status: response.statusCode, headers: response.headers, body: player.bytes.toString() };
  };
  return { ...at, registry, publisher, goLive, play, call };
}
