import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { MpegtsProviderConfig, VirtualHostConfig } from '../../../src/config/model.ts';
import type { UdpPorts } from '../../../src/config/udp-ports.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { Names } from '../../../src/access/publisher-grant.ts';
import { MpegtsServer } from '../../../src/providers/mpegts-udp/server.ts';
import { aloneWith } from '../cluster/alone.ts';
import { recordLog } from '../media/input-recorder.ts';
import { freePorts } from '../network/ports.ts';
import { AUDIO, sceneMedia, TsScene, VIDEO } from './ts-scene.ts';

export interface MpegtsSetup {
  /** Configuration of the application `app`. */
  readonly mpegts?: Partial<MpegtsProviderConfig>;
  readonly hosts?: readonly string[];
  /** Of what is bound beside the ports. */
  readonly groups?: (port: number) => readonly UdpPorts[];
  /** The StreamMap, by the first port of `ports`. */
  readonly streams?: (port: number) => MpegtsProviderConfig['streams'];
  readonly ports?: number;
  readonly signedPolicy?: VirtualHostConfig['signedPolicy'];
  /** What it lets senders in with. */
  readonly access?: Partial<AccessOptions>;
  /** What the cluster takes its time for: no name is given before. */
  readonly asked?: Promise<void>;
}

export interface TakenStream {
  readonly input: InputStream;
  readonly packets: Packet[];
  closed: string | undefined;
}

/** A registry with `app`, which takes MPEG-TS as `live_<port>`, and the server on free ports. */
export async function startMpegts(t: ExecutionContext, setup: MpegtsSetup = {}) {
  const {
    hosts = ['127.0.0.1'],
    groups = () => [],
    streams = (port) => [{ name: 'live_${Port}', port: `${port}/udp` }],
  } = setup;
  const all = freePorts(setup.ports ?? 1).sort((a, b) => a - b);
  const [first] = all as [number];
  const registry = new Registry();
  const application = (more: Partial<MpegtsProviderConfig> = {}) => ({
    name: 'app',
    type: 'live',
    publishers: {},
    providers: {
      mpegts: {
        maxConnection: 0,
        timestampMode: 'Auto',
        packetSilenceTimeoutMs: 1500,
        audioMap: [],
        packetReordering: false,
        streams: streams(first),
        ...setup.mpegts,
        ...more,
      },
    },
  });
  const config = {
    name: 'default',
    host: { names: ['*'] },
    signedPolicy: setup.signedPolicy,
    applications: [application()],
  };
  const vhost = registry.createVhost(config as unknown as VirtualHostConfig, true);
  const taken: TakenStream[] = [];
  registry.on('input', (input) => {
    const stream: TakenStream = { input, packets: [], closed: undefined };
    taken.push(stream);
    input.read({ packet: (packet) => void stream.packets.push(packet) });
    input.once('close', (reason) => (stream.closed = reason));
  });
  const { log, lines } = recordLog();
  const group = groups(first);
  const ports = [
    ...all.filter((port) => !group.some((one) => one.first === port)).map((port) => ({ first: port, last: port })),
    ...group,
  ];
  const given: InputStream[] = [];
  const notGiven: unknown[] = [];
  const slow: Names = {
    publish: async (...args) => {
      await setup.asked;
      try {
        const input = await names.publish(...args);
        given.push(input);
        return input;
      } catch (error) {
        notGiven.push(error);
        throw error;
      }
    },
  };
  const { access, cluster, names } = await aloneWith(registry, { log, names: slow, ...setup.access });
  const server = await MpegtsServer.listen({ registry, access, log, hosts, ports });
  t.teardown(async () => {
    await server.close();
    registry.close('the test is over');
    await cluster.close();
  });
  return { registry, vhost, server, given, notGiven, taken, lines, ports: all, port: first, application };
}

/** Sends a scene of two seconds over UDP, in datagrams of one packet or several. */
export class UdpSender {
  readonly #socket: Socket;
  readonly #port: number;
  readonly #address: string;
  readonly scene: TsScene;
  /** What becomes of each datagram: which ones leave, and in which order. */
  wrap: (datagram: Buffer) => readonly Buffer[] = (datagram) => [datagram];
  #next = 0;

  private constructor(socket: Socket, port: number, address: string) {
    this.#socket = socket;
    this.#port = port;
    this.#address = address;
    this.scene = new TsScene((packet) => this.wrap(packet).forEach((datagram) => this.sendRaw(datagram)));
  }

  static async open(
    t: ExecutionContext,
    port: number,
    address = '127.0.0.1',
    multicastInterface?: string,
  ): Promise<UdpSender> {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    socket.bind(0, address.includes(':') ? '::1' : '127.0.0.1');
    await once(socket, 'listening');
    if (multicastInterface !== undefined) socket.setMulticastInterface(multicastInterface);
    t.teardown(() => socket.close());
    return new UdpSender(socket, port, address);
  }

  /** Where it sends from. */
  get from(): number {
    return this.#socket.address().port;
  }

  sendRaw(datagram: Buffer): void {
    this.#socket.send(datagram, this.#port, this.#address);
  }

  /** The tables, and pictures with sound. */
  async send(pictures: number): Promise<void> {
    const { video, audio } = await sceneMedia();
    this.scene.tables([VIDEO, AUDIO]);
    for (let end = this.#next + pictures; this.#next < end; this.#next++) {
      this.scene.pes(VIDEO.pid, video[this.#next % video.length] as Buffer, { pts: this.#next * 3600 });
      // sockets hold so much: the server has its turn
      await turn();
      this.scene.pes(AUDIO.pid, audio[this.#next % audio.length] as Buffer, { pts: this.#next * 3600, streamId: 0xc0 });
    }
  }
}
