import Type, { type Static } from 'typebox';
import { findFfmpeg } from '../ffmpeg.ts';
import type { Offer } from './module-choice.ts';
import type { Logger } from '../log/log.ts';
import { EncoderRuns } from './encoder-runs.ts';
import { tryDevices, type UsableDevice } from './hardware.ts';
import { SOFTWARE, type InventoryCodec, type SoftwareModule } from './modules.ts';
import { probeFfmpeg, type Capabilities } from './probe.ts';

/** Codec entry of the management API. */
export const CodecEntry = Type.Object({
  busId: Type.String({ description: 'of a device; a dash for software' }),
  displayName: Type.String(),
  id: Type.Integer(),
  isDecoder: Type.Boolean(),
  isDefault: Type.Boolean(),
  isEncoder: Type.Boolean(),
  isHwAccel: Type.Boolean(),
  mediaType: Type.Union([Type.Literal('Video'), Type.Literal('Audio')]),
  metrics: Type.Object({ active: Type.Object({ decoder: Type.Integer(), encoder: Type.Integer() }) }),
  module: Type.String(),
  name: Type.String({ description: 'module:id' }),
  supportedCodecs: Type.Array(Type.String()),
});
export type CodecEntry = Static<typeof CodecEntry>;

type Row = Omit<CodecEntry, 'metrics'>;
type Direction = 'decoder' | 'encoder';

export interface CodecInventoryOptions {
  readonly log: Logger;
  /** Environment for `findFfmpeg`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Folder that holds `dev`, `proc` and `sys`. */
  readonly root?: string;
}

/** Encoders and decoders of this machine's ffmpeg, with counts of active ones. */
export class CodecInventory {
  readonly runs = new EncoderRuns();
  readonly #options: CodecInventoryOptions;
  readonly #active = new Map<string, Record<Direction, number>>();
  #offer: Promise<Offer | undefined> | undefined;
  #rows: { readonly of: Offer; readonly rows: readonly Row[] } | undefined;
  #hasLoggedNone = false;

  constructor(options: CodecInventoryOptions) {
    this.#options = options;
  }

  /** Lists one entry per software module and device; empty without an ffmpeg, which is then looked for again. */
  async read(): Promise<CodecEntry[]> {
    const offer = await this.offer();
    if (offer === undefined) return [];
    if (this.#rows?.of !== offer) this.#rows = { of: offer, rows: rowsOf(offer) };
    return this.#rows.rows.map((row) => {
      const { decoder = 0, encoder = 0 } = this.#active.get(keyOf(row)) ?? {};
      return { ...row, metrics: { active: { decoder, encoder } } };
    });
  }

  /** Finds the available encoders and decoders; undefined without an ffmpeg, which is then looked for again. */
  offer(): Promise<Offer | undefined> {
    return (this.#offer ??= this.#find());
  }

  /** Counts a started decoder or encoder. @returns function to call once when it has ended */
  started(entry: Pick<CodecEntry, 'mediaType' | 'name'>, direction: Direction): () => void {
    const key = keyOf(entry);
    const counts = this.#active.get(key) ?? { decoder: 0, encoder: 0 };
    this.#active.set(key, counts);
    counts[direction]++;
    let ended = false;
    return () => {
      if (!ended) counts[direction]--;
      ended = true;
    };
  }

  async #find(): Promise<Offer | undefined> {
    const { log, env, root } = this.#options;
    try {
      const { path } = await findFfmpeg(env);
      const capabilities = await probeFfmpeg(path);
      return { capabilities, devices: await tryDevices(capabilities, log, root) };
    } catch (error) {
      const text = 'ffmpeg was not found: the list of codecs is empty';
      if (!this.#hasLoggedNone) log.error({ err: error }, text);
      this.#hasLoggedNone = true;
      this.#offer = undefined;
      return undefined;
    }
  }
}

function rowsOf({ capabilities, devices }: Offer): Row[] {
  return [...softwareRows(capabilities), ...devices.map(deviceRow)];
}

/** With the media type, because the default modules of video and audio share one name. */
function keyOf({ mediaType, name }: Pick<CodecEntry, 'mediaType' | 'name'>): string {
  return `${mediaType}/${name}`;
}

function softwareRows(capabilities: Capabilities): Row[] {
  const taken = new Set<string>();
  return SOFTWARE.flatMap((module) => {
    const encodes = supported(module.encoders, capabilities.encoders);
    const decodes = supported(module.decoders, capabilities.decoders);
    const all = [...encodes.map((codec) => `encoder ${codec}`), ...decodes.map((codec) => `decoder ${codec}`)];
    if (all.length === 0) return [];
    const isDefault = all.some((one) => !taken.has(one));
    for (const one of all) taken.add(one);
    const { displayName, mediaType } = module;
    const row = rowOf(module.module, 0, encodes, decodes);
    return { ...row, busId: '-', displayName, isDefault, isHwAccel: false, mediaType };
  });
}

function supported(names: SoftwareModule['encoders'] = {}, there: ReadonlySet<string>): InventoryCodec[] {
  const codecs = Object.entries(names) as [InventoryCodec, readonly string[]][];
  return codecs.filter(([, any]) => any.some((name) => there.has(name))).map(([codec]) => codec);
}

function deviceRow({ device, encodes, decodes }: UsableDevice): Row {
  const { module, id, busId, displayName } = device;
  const row = rowOf(module, id, encodes, decodes);
  return { ...row, busId, displayName, isDefault: false, isHwAccel: true, mediaType: 'Video' };
}

function rowOf(module: string, id: number, encodes: readonly InventoryCodec[], decodes: readonly InventoryCodec[]) {
  return {
    id,
    isDecoder: decodes.length > 0,
    isEncoder: encodes.length > 0,
    module,
    name: `${module}:${id}`,
    supportedCodecs: [...new Set<string>([...encodes, ...decodes])],
  };
}
