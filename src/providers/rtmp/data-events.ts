import type { RtmpProviderConfig } from '../../config/model.ts';
import { id3Tag, type Id3Frame } from '../../containers/id3.ts';
import { eventRate, MAX_EVENT_BYTES } from '../../core/event-limits.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { FaultLog } from '../../log/log.ts';
import { decodeAmf0, encodeAmf0Within } from '../../protocols/rtmp/amf0.ts';
import { isAmfObject, type AmfValue } from '../../protocols/rtmp/amf-value.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import { readAdCue, type AdCue } from './ad-cue.ts';

/** Longest announcement of an ad break that is kept. */
const MAX_PREROLL_MS = 60_000;
/** Events that are passed on; those that encoders and players use themselves are not. */
const PASSED: ReadonlySet<string> = new Set(['onTextData', 'onCuePoint']);
const VALUE = '${TriggerValue}';
const PREFIX = 'AMFDataMessage';

type Generated = NonNullable<RtmpProviderConfig['eventGenerator']>['event'][number];

interface Rule {
  readonly name: string;
  /** Properties that lead to the value. */
  readonly path: readonly string[];
  readonly tag: Generated['hlsid3v2'];
}

/**
 * Data messages of one publisher as events of its stream: `onTextData` and `onCuePoint` as they are, for pushes over RTMP;
 * ID3 tags of those that `EventGenerator` names; and the ad breaks that YouTube's cue points announce.
 */
export class DataEvents {
  readonly #input: InputStream;
  readonly #rules: readonly Rule[];
  readonly #faults: FaultLog;
  readonly #rate = eventRate();
  /** Begins the ad break that was announced last. */
  #announced: NodeJS.Timeout | undefined;

  constructor(input: InputStream, { eventGenerator }: Pick<RtmpProviderConfig, 'eventGenerator'>, faults: FaultLog) {
    this.#input = input;
    this.#rules = eventGenerator?.event.map(ruleOf) ?? [];
    this.#faults = faults;
  }

  /** @param values of a data message, its name the first, or the second after `@setDataFrame` */
  take(values: readonly AmfValue[]): void {
    const [name, ...rest] = values[0] === '@setDataFrame' ? values.slice(1) : values;
    if (typeof name !== 'string') return;
    const rules = this.#rules.filter((rule) => rule.name === name);
    if (rules.length === 0 && !PASSED.has(name)) return;
    if (!this.#rate.take()) return this.#faults.count('dropped a data message: the publisher sends too many');
    let message: Buffer;
    let tree: readonly AmfValue[];
    try {
      message = encodeAmf0Within(MAX_EVENT_BYTES, name, ...rest);
      // the written form has no references to itself
      [, ...tree] = decodeAmf0(message);
    } catch (error) {
      if (!(error instanceof RtmpError)) throw error;
      return this.#faults.count(`dropped a data message: ${error.message}`);
    }
    if (PASSED.has(name)) this.#input.inject('AMF', message);
    if (name === 'onTextData') this.#show(tree);
    for (const rule of rules) this.#generate(rule, tree);
    const cue = name === 'onCuePoint' ? readAdCue(tree) : undefined;
    if (cue !== undefined) this.#cue(cue);
  }

  /** Idempotent. */
  close(): void {
    clearTimeout(this.#announced);
  }

  /** Shows the text of a message in subtitles (`text` and `language`, as Wowza's manual and ffmpeg have it). */
  #show(values: readonly AmfValue[]): void {
    const text = valueAt(values, ['text']);
    if (text !== undefined) this.#input.showText(text, valueAt(values, ['language']) ?? '');
  }

  #generate({ path, tag: { eventType, frameType, info, data } }: Rule, values: readonly AmfValue[]): void {
    const value = valueAt(values, path);
    if (value === undefined) return;
    const filled = (text: string): string => text.replaceAll(VALUE, () => value);
    const tag = id3Tag([frameOf(frameType, filled(info), data === '' ? value : filled(data))]);
    if (tag.length > MAX_EVENT_BYTES) this.#faults.count('dropped an event: its ID3 tag is too large');
    else this.#input.inject('ID3v2', tag, eventType === 'event' ? undefined : eventType);
  }

  #cue({ prerollMs, ...cue }: AdCue): void {
    const data = Buffer.from(JSON.stringify(cue));
    clearTimeout(this.#announced);
    if (prerollMs <= 0) this.#input.inject('CUE', data);
    else
      this.#announced = setTimeout(() => this.#input.inject('CUE', data), Math.min(prerollMs, MAX_PREROLL_MS)).unref();
  }
}

function frameOf(id: string, info: string, data: string): Id3Frame {
  if (id === 'PRIV') return { id, owner: info, data: Buffer.from(data) };
  return id === 'TXXX' ? { id, description: info.replaceAll('\0', ''), value: data } : { id, text: data };
}

/** A trigger is the name of a message and those of properties, as in `onTextData.text`. */
function ruleOf({ trigger, hlsid3v2 }: Generated): Rule {
  const parts = trigger.split('.').map((part) => part.trim().replace(/^\[(.*)\]$/, '$1'));
  const [name = '', ...path] = parts[0] === PREFIX ? parts.slice(1) : parts;
  return { name, path, tag: hlsid3v2 };
}

/** Text of what a path leads to, from the first value that is an object; objects as JSON. */
function valueAt(values: readonly AmfValue[], path: readonly string[]): string | undefined {
  let value: AmfValue = values.find((one) => typeof one === 'object' && one !== null) ?? values[0];
  for (const key of path) {
    if (!Array.isArray(value) && !isAmfObject(value)) return undefined;
    value = Object.hasOwn(value, key) ? (value as Readonly<Record<string, AmfValue>>)[key] : undefined;
  }
  if (value === undefined || value === null) return undefined;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
