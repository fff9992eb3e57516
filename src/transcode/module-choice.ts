import type { EncodeJob } from './encoding.ts';
import { deviceEncoder, type UsableDevice } from './hardware.ts';
import { SOFTWARE, type InventoryCodec } from './modules.ts';
import type { Capabilities } from './probe.ts';

/** The encoder or decoder chosen for a job. */
export interface Choice {
  readonly module: string;
  /** Name in the codec inventory: `module:id`. */
  readonly name: string;
  /** ffmpeg's name of the encoder or decoder. */
  readonly ffmpegName: string;
  /** Absent for software. */
  readonly device?: UsableDevice['device'];
}

/** An encode with its encoder. */
export interface ChosenJob {
  readonly job: EncodeJob;
  readonly choice: Choice;
  /**
   * Seconds on the input's clock from which frames are encoded; earlier ones are decoded and dropped. Undefined to encode
   * everything.
   */
  readonly resumeAt?: number | undefined;
  /** Whether an HDR source is mapped to SDR. */
  readonly mapsTones?: boolean;
}

/** The choice, with the configured modules that could not be used; or the reason why there is none. */
export type Chosen = { readonly choice: Choice; readonly passedOver: readonly string[] } | { readonly reason: string };

/** Encoders and decoders of this machine. */
export interface Offer {
  readonly capabilities: Capabilities;
  readonly devices: readonly UsableDevice[];
}

/** Names of modules in other servers' configurations. */
const ALIASES: Readonly<Record<string, string>> = {
  nvenc: 'nv',
  libx264: 'x264',
  libx265: 'x265',
  libsvtav1: 'svtav1',
};

/**
 * The encoder for a codec: the first configured module that is usable here, else the default one.
 * @param modules `<name>[:id]`, separated by commas; undefined for the default
 */
export function chooseEncoder(codec: InventoryCodec, modules: string | undefined, offer: Offer): Chosen {
  const passedOver: string[] = [];
  for (const wanted of named(modules)) {
    const choice = byName(codec, wanted, offer);
    if (choice !== undefined) return { choice, passedOver };
    passedOver.push(wanted);
  }
  const choice = software('encoders', codec, offer.capabilities);
  return choice === undefined ? { reason: `this ffmpeg has no encoder for ${codec}` } : { choice, passedOver };
}

/** The decoder for a codec, in software, because decoded frames are filtered there. */
export function chooseDecoder(codec: InventoryCodec, { capabilities }: Pick<Offer, 'capabilities'>): Chosen {
  const choice = software('decoders', codec, capabilities);
  return choice === undefined ? { reason: `this ffmpeg has no decoder for ${codec}` } : { choice, passedOver: [] };
}

function named(modules: string | undefined): string[] {
  return (modules ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

function byName(codec: InventoryCodec, wanted: string, { capabilities, devices }: Offer): Choice | undefined {
  const [given = '', id, ...more] = wanted.split(':');
  if (more.length > 0 || (id !== undefined && !/^\d+$/.test(id))) return undefined;
  const module = Object.hasOwn(ALIASES, given) ? ALIASES[given] : given;
  for (const usable of devices) {
    const { device } = usable;
    const ffmpegName = deviceEncoder(usable, codec);
    if (device.module !== module || (id !== undefined && device.id !== Number(id)) || ffmpegName === undefined)
      continue;
    return { module, name: `${module}:${device.id}`, ffmpegName, device };
  }
  return Number(id ?? 0) === 0 ? software('encoders', codec, capabilities, module) : undefined;
}

/** @param only module; undefined or `default` for any */
function software(
  direction: 'encoders' | 'decoders',
  codec: InventoryCodec,
  capabilities: Capabilities,
  only?: string,
): Choice | undefined {
  for (const { module, [direction]: names } of SOFTWARE) {
    if (only !== undefined && only !== 'default' && only !== module) continue;
    const found = names?.[codec]?.find((name) => capabilities[direction].has(name));
    if (found !== undefined) return { module, name: `${module}:0`, ffmpegName: found };
  }
  return undefined;
}
