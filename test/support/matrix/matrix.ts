import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { Kiln } from '../server/kiln.ts';
import { freePair, freePorts } from '../network/ports.ts';
import { issue } from '../network/x509.ts';
import { Clips, FRAMERATE, HEIGHT, WIDTH, type AudioName, type VideoName } from './clip.ts';
import type { Judgement } from './judge.ts';
import { LEAST_SECONDS, PLAYERS, playersOf, type PlayerName } from './players.ts';
import { PUBLISHERS } from './publishers.ts';
import type { Cell } from './table.ts';

const playlist = (audio: AudioName) => `<Playlist><Name>${audio}</Name><FileName>${audio.toLowerCase()}</FileName>
  <Options><EnableTsPackaging>true</EnableTsPackaging></Options><Rendition><Name>all</Name><Video>v</Video><Audio>${audio}</Audio></Rendition></Playlist>`;
const sound = (
  audio: AudioName,
) => `<Audio><Name>${audio}</Name><Codec>${audio.toLowerCase()}</Codec><Bitrate>96000</Bitrate>
  <Samplerate>48000</Samplerate><Channel>2</Channel><BypassIfMatch><Codec>eq</Codec></BypassIfMatch></Audio>`;

/** The picture as it comes, and sound for every player. */
const PROFILE = `<OutputProfiles><OutputProfile><Name>matrix</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>
  <Encodes><Video><Name>v</Name><Bypass>true</Bypass></Video>${sound('AAC')}${sound('OPUS')}</Encodes>
  ${playlist('AAC')}${playlist('OPUS')}</OutputProfile></OutputProfiles>`;

const BYPASS = `<OutputProfiles><OutputProfile><Name>bypass</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>
  <Encodes><Video><Name>v</Name><Bypass>true</Bypass></Video><Audio><Name>a</Name><Bypass>true</Bypass></Audio></Encodes></OutputProfile></OutputProfiles>`;

/** Seconds by which a beep may be off its flash: a picture, a frame of sound, and what clocks are told with. */
const MAX_SKEW = 0.1;

/** Files that a player misses who stands still for a while are still there. */
const SEGMENT_COUNT = 20;
/** A sender may stand still for so long. */
const SILENCE_MS = 20_000;

const AT_ONCE = 2;
const TURN_MS = 300_000;
const QUEUE_MS = 1_800_000;

/** One server with every way in and out, and who comes in and looks. */
export class Matrix {
  readonly kiln: Kiln;
  readonly #clips: Clips;
  readonly #udpPorts: number[];
  #origin: Promise<Kiln> | undefined;
  #count = 0;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  private constructor(kiln: Kiln, clips: Clips, udpPorts: number[]) {
    this.kiln = kiln;
    this.#clips = clips;
    this.#udpPorts = udpPorts;
  }

  /**
   * @param udpPorts how many publish over UDP
   * @param segmentSeconds of HLS and LL-HLS
   */
  static async open(udpPorts = 0, segmentSeconds = 1): Promise<Matrix> {
    const clips = await Clips.open();
    const { cert, key } = issue('localhost');
    const [certPath, keyPath] = ['tls.crt', 'tls.key'].map((name) => join(clips.folder, name)) as [string, string];
    await Promise.all([writeFile(certPath, cert), writeFile(keyPath, key)]);
    const ports = freePorts(udpPorts);
    const rtpPort = freePair();
    const segments = `<SegmentDuration>${segmentSeconds}</SegmentDuration><SegmentCount>${SEGMENT_COUNT}</SegmentCount>`;
    const kiln = await Kiln.start({
      llhls: segments,
      hls: segments,
      ovt: true,
      srt: {},
      whip: true,
      rtmpPlay: true,
      rtsp: `<UDPPort>${rtpPort}-${rtpPort + 1}</UDPPort>`,
      rtspIn: true,
      tls: { certPath, keyPath },
      bindProviders: udpPorts === 0 ? '' : `<MPEGTS><Port>${ports.join(',')}</Port></MPEGTS>`,
      providers: `<RTSPPull/>${udpPorts === 0 ? '' : `<MPEGTS><PacketSilenceTimeoutMs>${SILENCE_MS}</PacketSilenceTimeoutMs><StreamMap><Stream><Name>udp_\${Port}</Name><Port>${ports.join(',')}/udp</Port></Stream></StreamMap></MPEGTS>`}`,
      application: PROFILE,
    });
    return new Matrix(kiln, clips, ports);
  }

  async close(): Promise<void> {
    await Promise.all([this.kiln.stop(), this.#origin?.then((kiln) => kiln.stop())]);
    await this.#clips.close();
  }

  /** `run` when there is room for one more: each needs some of the machine to be on time. */
  async runInTurn(t: ExecutionContext, cell: Cell): Promise<void> {
    t.timeout(QUEUE_MS);
    while (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
    t.timeout(TURN_MS);
    try {
      await this.run(t, cell);
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  /** Publishes until the test is over. @returns the name of the stream, once that is live */
  async publish(t: Pick<ExecutionContext, 'teardown'>, { publisher, codecs }: Cell): Promise<string> {
    const port = publisher.startsWith('MPEG-TS') ? (this.#udpPorts.pop() ?? 0) : 0;
    const stream = port > 0 ? `udp_${port}` : `cell${this.#count++}`;
    const { kiln } = this;
    const origin = (): Promise<Kiln> => (this.#origin ??= Kiln.start({ ovt: true, application: BYPASS }));
    await PUBLISHERS[publisher]({ t, kiln, origin, port, stream, codecs, clip: () => this.#clips.of(codecs) });
    await kiln.liveStream(stream);
    return stream;
  }

  /** Publishes, lets every player watch at once, and asserts that each decodes all and in step. */
  async run(t: ExecutionContext, cell: Cell): Promise<void> {
    const { objections, lines } = await this.try(t, cell);
    for (const line of lines) t.log(line);
    t.deepEqual(objections, []);
  }

  /** What players make of a pair: a line for each, and what is not as it should be. */
  async try(
    t: Pick<ExecutionContext, 'teardown'>,
    cell: Cell,
  ): Promise<{ readonly objections: string[]; readonly lines: string[] }> {
    const stream = await this.publish(t, cell);
    const [video, audio] = cell.codecs.split('+') as [VideoName, AudioName];
    const { input } = (await this.kiln.stream(stream)).body.response;
    const found = input.tracks.flatMap(({ video, audio }) => (video ?? audio)?.codec ?? []).join('+');
    const objections = found === cell.codecs ? [] : [`the server finds ${found}`];
    const lines: string[] = [];
    const watch = async (player: PlayerName): Promise<void> => {
      try {
        for (const judgement of await PLAYERS[player].watch({ kiln: this.kiln, stream, video, audio })) {
          lines.push(`${player}: ${summary(judgement)}`);
          objections.push(...objectionsTo(judgement).map((objection) => `${player}: ${objection}`));
        }
      } catch (error) {
        objections.push(`${player}: ${(error as Error).message}`);
      }
    };
    await Promise.all(playersOf(cell.codecs).map(watch));
    return { objections, lines };
  }
}

function summary({ pictures, keyFrames, sound: seconds, skews }: Judgement): string {
  return `${pictures} pictures, ${keyFrames} key frames, ${seconds.toFixed(1)} s of sound, off by ${skews.map((skew) => Math.round(skew * 1000)).join(', ')} ms`;
}

function objectionsTo({ pictures, keyFrames, sizes, sound: seconds, skews }: Judgement): string[] {
  return [
    ...(sizes.length === 1 && sizes[0] === `${WIDTH}x${HEIGHT}` ? [] : [`pictures of ${sizes.join(', ')}`]),
    ...(pictures >= LEAST_SECONDS * FRAMERATE ? [] : [`${pictures} pictures`]),
    ...(keyFrames >= LEAST_SECONDS - 1 ? [] : [`${keyFrames} key frames`]),
    ...(seconds >= LEAST_SECONDS ? [] : [`${seconds} s of sound`]),
    ...(skews.length > 0 ? [] : ['no flash with a beep']),
    ...skews.filter((skew) => Math.abs(skew) > MAX_SKEW).map((skew) => `a beep is off by ${skew} s`),
  ];
}
