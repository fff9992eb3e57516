import Type from 'typebox';
import { Application } from '../config/elements/application.ts';
import { OutputProfile } from '../config/elements/output-profile.ts';
import { VirtualHost } from '../config/elements/vhost.ts';
import { describe } from '../config/descriptions.ts';
import { elementName } from '../config/names.ts';
import { isListSchema, isObjectSchema, type Described } from '../config/resolve.ts';
import { StandbySpec } from '../channels/standby/kind.ts';
import { DumpChoice, DumpCreation, HlsConclusion, KeyRotation } from './requests/hls-request.ts';
import { StreamEvent } from './requests/event-request.ts';
import { StreamSubtitles } from './requests/subtitles-request.ts';
import { PullCreation } from './requests/pull-request.ts';
import { PushCreation } from './requests/push-request.ts';
import { MultiplexChannelCreation } from './multiplex-channel.ts';
import { RecordCreation } from './requests/record-request.ts';
import { ScheduledChannelChange, ScheduledChannelCreation } from './scheduled-channel.ts';
import { TaskChoice, TaskId } from './requests/task-actions.ts';

const ELEMENTS: Readonly<Record<string, Described>> = { Application, OutputProfile, VirtualHost };

/** Path of virtual hosts in Server.xml. */
const VHOST = ['Server', 'VirtualHosts', 'VirtualHost'];
const APPLICATION = [...VHOST, 'Applications', 'Application'];
const PROFILE = [...APPLICATION, 'OutputProfiles', 'OutputProfile'];

export type SchemaName =
  | 'Application'
  | 'ApplicationChange'
  | 'DumpChoice'
  | 'DumpCreation'
  | 'HlsConclusion'
  | 'KeyRotation'
  | 'MultiplexChannelCreation'
  | 'OutputProfile'
  | 'OutputProfileChange'
  | 'PullCreation'
  | 'PushCreation'
  | 'RecordCreation'
  | 'ScheduledChannelChange'
  | 'ScheduledChannelCreation'
  | 'StandbyCreation'
  | 'StreamEvent'
  | 'StreamSubtitles'
  | 'TaskChoice'
  | 'TaskId'
  | 'VirtualHost';

/**
 * Schema of a configuration object in a body or an answer. The route accepts anything, since its reader reports faults; the
 * description of the API refers to the schema of that name.
 */
export function shown(name: SchemaName | `${SchemaName}[]`) {
  return Type.Unknown({ shows: name });
}

/** Replaces the schemas of `shown` by references, anywhere in a document. */
export function showReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(showReferences);
  if (typeof value !== 'object' || value === null) return value;
  const { shows } = value as { readonly shows?: unknown };
  if (typeof shows !== 'string') {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, showReferences(item)]));
  }
  return shows.endsWith('[]') ? { type: 'array', items: reference(shows.slice(0, -2)) } : reference(shows);
}

/** Schemas for these references, in plain JSON Schema. */
export function configSchemas(): Readonly<Record<SchemaName, object>> {
  const { properties: application, ...aboutApplication } = whole(Application, APPLICATION);
  const { name: _name, outputProfiles: _profiles, ...changeable } = application;
  const { properties: profile, ...aboutProfile } = whole(OutputProfile, PROFILE);
  const { name: _profile, ...replaceable } = profile;
  const { properties: vhost, ...aboutVhost } = whole(VirtualHost, VHOST);
  return {
    Application: { ...aboutApplication, properties: { ...application, dynamic: { type: 'boolean', readOnly: true } } },
    ApplicationChange: { type: 'object', properties: changeable },
    DumpChoice,
    DumpCreation,
    HlsConclusion,
    KeyRotation,
    MultiplexChannelCreation,
    OutputProfile: { ...aboutProfile, properties: profile },
    OutputProfileChange: {
      ...aboutProfile,
      required: aboutProfile.required.filter((key) => key !== 'name'),
      properties: replaceable,
    },
    PullCreation,
    PushCreation,
    RecordCreation,
    ScheduledChannelChange,
    ScheduledChannelCreation,
    StandbyCreation: StandbySpec,
    StreamEvent,
    StreamSubtitles,
    TaskChoice,
    TaskId,
    VirtualHost: {
      ...aboutVhost,
      properties: {
        ...vhost,
        applications: { ...vhost.applications, writeOnly: true },
        dynamicApplicationTemplate: { allOf: [reference('Application')], readOnly: true },
      },
    },
  };
}

function reference(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function whole(schema: Described, path: readonly string[]) {
  const required = new Set((schema as { required?: readonly string[] }).required);
  const properties: Record<string, object> = {};
  for (const [key, property] of Object.entries((schema as { properties: Record<string, Described> }).properties)) {
    if (property.ignored === true) continue;
    const own = [...path, elementName(key, property), ...(property.item === undefined ? [] : [property.item])];
    properties[key] = plain(property, own);
    if (property.default !== undefined) required.delete(key);
  }
  return { type: 'object', required: [...required], properties };
}

const KEYWORDS = ['type', 'enum', 'minimum', 'maximum', 'minLength', 'pattern', 'default'];

/** @param path of the element in Server.xml */
function plain(schema: Described, path: readonly string[]): object {
  const name = Object.keys(ELEMENTS).find((key) => ELEMENTS[key] === schema);
  if (name !== undefined) return reference(name);
  const description = describe(path);
  if (isObjectSchema(schema)) return { ...whole(schema, path), description };
  if (isListSchema(schema)) {
    const { minItems } = schema;
    return { type: 'array', items: plain(schema.items, path), ...(minItems !== undefined && { minItems }) };
  }
  const known = Object.entries(schema).filter(([key]) => KEYWORDS.includes(key));
  return { ...Object.fromEntries(known), description: `${description} (${schema.is})` };
}
