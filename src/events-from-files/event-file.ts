import type { XmlElement } from '../config/xml.ts';
import { parseXml } from '../config/xml.ts';
import { wildcard } from '../lib/wildcard.ts';
import { amfObject, type AmfObject, type AmfValue } from '../protocols/rtmp/amf-value.ts';

/** An event that is repeated in streams of one application. */
export interface RepeatedEvent {
  /** Names of input streams. */
  readonly streams: RegExp;
  readonly intervalMs: number;
  readonly event: GeneratedEvent;
}

export type GeneratedEvent =
  | { readonly format: 'sei'; readonly data: string; readonly keyFrameOnly: boolean }
  | { readonly format: 'amf'; readonly name: string; readonly properties: AmfObject };

const ROOT = 'EventInfo';
const MAX_EVENTS = 100;
const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 24 * 3600 * 1000;
const MAX_DATA_BYTES = 16 * 1024;
const AMF_TYPES: ReadonlySet<string> = new Set(['onTextData', 'onCuePoint']);
const KNOWN = new Set(['Enable', 'SourceStreamName', 'Interval', 'EventFormat', 'EventType', 'Values']);

/**
 * Reads the file that EventGenerator names, in OvenMediaEngine's format: in `EventInfo`, for each `Event`, `Enable`,
 * `SourceStreamName` (which may have wildcards), `Interval` in milliseconds, `EventFormat` (`sei` or `amf`) and `Values`:
 * for SEI `SeiType` (UserDataUnregistered), `Data` and `KeyframeOnly`, for AMF `AmfType` and `Data`, whose elements are
 * properties.
 * @returns those that are enabled
 * @throws Error, ConfigError with what is wrong, and on which line
 */
export function readEventFile(text: string, file: string): RepeatedEvent[] {
  const root = parseXml(text, file);
  if (root.name !== ROOT) throw new Error(`the root element must be ${ROOT}`);
  if (root.children.length > MAX_EVENTS) throw new Error(`there are more than ${MAX_EVENTS} events`);
  return root.children.flatMap((element) => {
    if (element.name !== 'Event') throw wrong(element, 'is not an Event');
    for (const child of element.children) if (!KNOWN.has(child.name)) throw wrong(child, 'is not known');
    return readFlag(child(element, 'Enable'), false) ? [readEvent(element)] : [];
  });
}

function readEvent(element: XmlElement): RepeatedEvent {
  const name = demanded(element, 'SourceStreamName');
  const interval = demanded(element, 'Interval');
  const intervalMs = Number(interval.text);
  if (!Number.isInteger(intervalMs) || intervalMs < MIN_INTERVAL_MS || intervalMs > MAX_INTERVAL_MS)
    throw wrong(interval, `is not a number of milliseconds from ${MIN_INTERVAL_MS} to ${MAX_INTERVAL_MS}`);
  return { streams: wildcard(name.text), intervalMs, event: readGenerated(element) };
}

function readGenerated(element: XmlElement): GeneratedEvent {
  const format = demanded(element, 'EventFormat');
  const values = demanded(element, 'Values');
  switch (format.text.toLowerCase()) {
    case 'sei':
      return readSei(element, values);
    case 'amf':
      return readAmf(values);
    default:
      throw wrong(format, 'is neither sei nor amf');
  }
}

function readSei(element: XmlElement, values: XmlElement): GeneratedEvent {
  const eventType = child(element, 'EventType');
  if (eventType !== undefined && eventType.text.toLowerCase() !== 'video')
    throw wrong(eventType, 'is not video, where SEI belongs');
  const type = child(values, 'SeiType');
  if (type !== undefined && type.text.toLowerCase() !== 'userdataunregistered')
    throw wrong(type, 'is not UserDataUnregistered');
  return {
    format: 'sei',
    data: limited(child(values, 'Data') ?? values).text,
    keyFrameOnly: readFlag(child(values, 'KeyframeOnly'), false),
  };
}

function readAmf(values: XmlElement): GeneratedEvent {
  const type = demanded(values, 'AmfType');
  if (!AMF_TYPES.has(type.text)) throw wrong(type, 'is neither onTextData nor onCuePoint');
  const properties = amfObject();
  for (const property of demanded(values, 'Data').children) properties[property.name] = readValue(limited(property));
  return { format: 'amf', name: type.text, properties };
}

/** A number, `true` or `false`; else it is text. */
function readValue({ text }: XmlElement): AmfValue {
  if (/^(true|false)$/.test(text)) return text === 'true';
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

function readFlag(element: XmlElement | undefined, otherwise: boolean): boolean {
  if (element === undefined) return otherwise;
  if (!/^(true|false)$/i.test(element.text)) throw wrong(element, 'is neither true nor false');
  return element.text.toLowerCase() === 'true';
}

function child({ children }: XmlElement, name: string): XmlElement | undefined {
  return children.find((one) => one.name === name);
}

function demanded(element: XmlElement, name: string): XmlElement {
  const found = child(element, name);
  if (found === undefined || (found.text === '' && found.children.length === 0)) throw wrong(element, `has no ${name}`);
  return found;
}

function limited(element: XmlElement): XmlElement {
  if (Buffer.byteLength(element.text) > MAX_DATA_BYTES) throw wrong(element, `is longer than ${MAX_DATA_BYTES} bytes`);
  return element;
}

function wrong({ name, line }: XmlElement, what: string): Error {
  return new Error(`line ${line}: ${name} ${what}`);
}
