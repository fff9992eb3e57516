import { spawn } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from '../log/log.ts';
import type { InventoryCodec } from './modules.ts';
import type { Capabilities } from './probe.ts';

/** An encoder's device that the machine lists; it may fail to open. */
export interface Device {
  readonly module: 'nv' | 'qsv' | 'vaapi';
  readonly id: number;
  readonly displayName: string;
  readonly busId: string;
  /** Suffix of ffmpeg's encoders for the device. */
  readonly encoderSuffix: string;
  /** Suffix of ffmpeg's decoders for the device; undefined if it accelerates the plain decoders. */
  readonly decoderSuffix: string | undefined;
  readonly encodeWith: readonly string[];
  readonly filter: string;
  readonly encoderOptions: readonly string[];
  readonly decodeWith: readonly string[];
  readonly decodeFilter: readonly string[];
}

/** A device that passed a trial. */
export interface UsableDevice {
  readonly device: Device;
  readonly encodes: readonly InventoryCodec[];
  readonly decodes: readonly InventoryCodec[];
}

const CODECS: readonly (readonly [InventoryCodec, string])[] = [
  ['H264', 'h264'],
  ['H265', 'hevc'],
  ['VP8', 'vp8'],
  ['VP9', 'vp9'],
  ['AV1', 'av1'],
];
/** Time limit of a trial, in which a working device encodes a few frames; a hanging one is not tried again. */
const TRIAL_MS = 5000;
const TEST_VIDEO = ['-f', 'lavfi', '-i', 'color=size=640x360:rate=30', '-frames:v', '5'];

/**
 * Finds usable devices by encoding a few frames with every codec that ffmpeg was built with for them: ffmpeg lists hardware
 * encoders even without the hardware.
 * @param root folder that holds `dev`, `proc` and `sys`
 */
export async function tryDevices(capabilities: Capabilities, log: Logger, root = '/'): Promise<UsableDevice[]> {
  const devices = [...(await nvidiaDevices(root)), ...(await renderDevices(root))];
  const tried = await Promise.all(devices.map((device) => tryDevice(capabilities, device, log)));
  return tried.filter(({ encodes, decodes }) => encodes.length > 0 || decodes.length > 0);
}

async function tryDevice(capabilities: Capabilities, device: Device, log: Logger): Promise<UsableDevice> {
  const { path, encoders, decoders } = capabilities;
  const { module, id, busId, encoderSuffix, decoderSuffix } = device;
  const encodes: InventoryCodec[] = [];
  const decodes: InventoryCodec[] = [];
  for (const [codec, name] of CODECS) {
    const encoder = `${name}_${encoderSuffix}`;
    if (!encoders.has(encoder)) continue;
    const encoding = [
      ...device.encodeWith,
      ...TEST_VIDEO,
      '-vf',
      device.filter,
      '-c:v',
      encoder,
      ...device.encoderOptions,
    ];
    const encoded = await trial(path, [...encoding, '-f', 'nut', 'pipe:1']);
    if (encoded === 'overdue') {
      log.warn({ module, id, busId, encoder }, 'a hardware encoder did not answer in time and is not used');
      return { device, encodes: [], decodes: [] };
    }
    if (encoded === 'failed') continue;
    encodes.push(codec);
    const decoder = decoderSuffix === undefined ? undefined : `${name}_${decoderSuffix}`;
    if (decoder !== undefined && !decoders.has(decoder)) continue;
    const choice = decoder === undefined ? [] : ['-c:v', decoder];
    const decoding = [...device.decodeWith, ...choice, '-i', 'pipe:0', ...device.decodeFilter, '-f', 'null', '-'];
    if (Buffer.isBuffer(await trial(path, decoding, encoded))) decodes.push(codec);
  }
  return { device, encodes, decodes };
}

/** ffmpeg's name of a device's encoder for a codec; undefined if its trial failed. */
export function deviceEncoder({ device, encodes }: UsableDevice, codec: InventoryCodec): string | undefined {
  const name = CODECS.find(([known]) => known === codec)?.[1];
  return name === undefined || !encodes.includes(codec) ? undefined : `${name}_${device.encoderSuffix}`;
}

type Result = Buffer | 'failed' | 'overdue';

/** Runs ffmpeg and returns its output if it succeeds in time. */
async function trial(path: string, args: readonly string[], input?: Buffer): Promise<Result> {
  const child = spawn(path, ['-nostdin', '-v', 'error', ...args], {
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: TRIAL_MS,
    killSignal: 'SIGKILL',
    detached: true,
  });
  // ffmpeg may end without reading its input: the exit code decides
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => {
    child.once('error', () => resolve('failed'));
    child.once('close', (code, signal) => {
      resolve(code === 0 ? Buffer.concat(chunks) : signal === 'SIGKILL' ? 'overdue' : 'failed');
    });
  });
}

async function nvidiaDevices(root: string): Promise<Device[]> {
  const cards = join(root, 'proc/driver/nvidia/gpus');
  const devices = await Promise.all(
    (await entries(cards)).map(async (busId): Promise<Device | undefined> => {
      const information = await readFile(join(cards, busId, 'information'), 'utf8').catch(() => '');
      const minor = /^Device Minor:\s*(\d+)/m.exec(information)?.[1];
      if (minor === undefined) return undefined;
      return {
        module: 'nv',
        id: Number(minor),
        displayName: /^Model:\s*(.+)$/m.exec(information)?.[1]?.trim() ?? 'NVIDIA',
        busId,
        encoderSuffix: 'nvenc',
        decoderSuffix: 'cuvid',
        encodeWith: [],
        filter: 'format=nv12',
        encoderOptions: ['-gpu', minor],
        decodeWith: ['-gpu', minor],
        decodeFilter: [],
      };
    }),
  );
  return devices.filter((device) => device !== undefined).sort((a, b) => a.id - b.id);
}

/** Devices of VAAPI and Quick Sync, on every render node. */
async function renderDevices(root: string): Promise<Device[]> {
  const nodes = (await entries(join(root, 'dev/dri'))).filter((name) => /^renderD\d+$/.test(name)).sort();
  const devices = await Promise.all(
    nodes.map(async (name, id): Promise<Device[]> => {
      const path = `/dev/dri/${name}`;
      const target = await readlink(join(root, 'sys/class/drm', name, 'device')).catch(() => '-');
      const common = { id, busId: basename(target), encoderOptions: [] };
      const qsv = ['-init_hw_device', `qsv=d:hw_any,child_device=${path}`, '-filter_hw_device', 'd'];
      return [
        {
          ...common,
          module: 'qsv',
          displayName: `Intel Quick Sync (${name})`,
          encoderSuffix: 'qsv',
          decoderSuffix: 'qsv',
          encodeWith: qsv,
          filter: 'format=nv12,hwupload=extra_hw_frames=64',
          decodeWith: qsv,
          decodeFilter: [],
        },
        {
          ...common,
          module: 'vaapi',
          displayName: `VAAPI (${name})`,
          encoderSuffix: 'vaapi',
          decoderSuffix: undefined,
          encodeWith: ['-init_hw_device', `vaapi=d:${path}`, '-filter_hw_device', 'd'],
          filter: 'format=nv12,hwupload',
          decodeWith: ['-hwaccel', 'vaapi', '-hwaccel_device', path, '-hwaccel_output_format', 'vaapi'],
          // fails for frames decoded without the device: they cannot be downloaded from it
          decodeFilter: ['-vf', 'hwdownload,format=nv12'],
        },
      ];
    }),
  );
  return devices.flat();
}

async function entries(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
