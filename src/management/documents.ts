import { Application } from '../config/elements/application.ts';
import { DEFAULT_PROFILE, OutputProfile } from '../config/elements/output-profile.ts';
import { VirtualHost } from '../config/elements/vhost.ts';
import type { ApplicationConfig, OutputProfileConfig, VirtualHostConfig } from '../config/model.ts';
import { problemText } from '../config/names.ts';
import { readConfig, type Problem, type Reading } from '../config/read.ts';
import { explicit } from '../config/resolve.ts';
import { kilnError } from '../errors.ts';
import { nameObjection } from '../core/names.ts';
import { TEMPLATE } from '../core/vhost.ts';

/** A JSON object of the management API: given values only, with the API's keys. */
export type Document = Readonly<Record<string, unknown>>;

/** Called with the given elements that have no effect, each with its path. */
export type Ignore = (ignored: readonly string[]) => void;

const MAX_IGNORED = 10;

/** Providers of an application that is created without any (docs/compatibility.md#rest-answers). */
const DEFAULT_PROVIDERS = { ovt: {}, rtspPull: {}, webrtc: {}, srt: {}, rtmp: {} };
const DEFAULT_PUBLISHERS = { llhls: {}, webrtc: {}, ovt: {} };

const DEFAULT_PROFILES = { outputProfile: [DEFAULT_PROFILE] };

const UNCHANGEABLE = ['name', 'dynamic', 'outputProfiles'];

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws configInvalid, valueMissing (a required value) */
export function readVhost(json: unknown, ignore: Ignore): VirtualHostConfig {
  const config = taken(readConfig(VirtualHost, json), ignore) as VirtualHostConfig;
  checkName(config.name, ['name']);
  config.applications.forEach((application, index) => checkApplication(application, ['applications', index]));
  return config;
}

/** @throws configInvalid, valueMissing */
export function readApplication(json: unknown, ignore: Ignore): ApplicationConfig {
  const config = taken(readConfig(Application, json), ignore) as ApplicationConfig;
  checkApplication(config, []);
  return config;
}

/** @throws configInvalid, valueMissing */
export function readProfile(json: unknown, ignore: Ignore): OutputProfileConfig {
  const config = taken(readConfig(OutputProfile, json), ignore) as OutputProfileConfig;
  checkProfile(config, []);
  return config;
}

export function documentOf(config: object): Document {
  return explicit(config) as Document;
}

/** Adds the defaults of applications that the API creates. */
export function withDefaults(application: Document): Document {
  return {
    providers: DEFAULT_PROVIDERS,
    publishers: DEFAULT_PUBLISHERS,
    outputProfiles: DEFAULT_PROFILES,
    ...application,
  };
}

/**
 * Merges a change into an application's document: objects recursively; lists and values are replaced.
 * @throws unchangeable
 */
export function patched(application: Document, change: Document): Document {
  for (const key of UNCHANGEABLE) if (Object.hasOwn(change, key)) throw kilnError('unchangeable', key);
  return merge(application, change);
}

function merge(into: Document, change: Document): Document {
  const merged: Record<string, unknown> = { ...into };
  for (const [key, value] of Object.entries(change)) {
    // defined, not assigned: a key may be __proto__
    Object.defineProperty(merged, key, {
      value: isDocument(value) && isDocument(into[key]) ? merge(into[key], value) : value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return merged;
}

export function withProfiles(config: ApplicationConfig, profiles: readonly Document[]): Document {
  const document = documentOf(config);
  const others = isDocument(document.outputProfiles) ? document.outputProfiles : {};
  return { ...document, outputProfiles: { ...others, outputProfile: profiles } };
}

function checkApplication({ name, outputProfiles }: ApplicationConfig, path: Problem['path']): void {
  if (name !== TEMPLATE) checkName(name, [...path, 'name']);
  outputProfiles.outputProfile.forEach((profile, index) => {
    checkProfile(profile, [...path, 'outputProfiles', 'outputProfile', index]);
  });
}

function checkProfile({ name, encodes }: OutputProfileConfig, path: Problem['path']): void {
  checkName(name, [...path, 'name']);
  if (encodes.videos.length > 0 || encodes.audios.length > 0) return;
  throw kilnError('valueMissing', problemText({ path: [...path, 'encodes'], message: 'needs a video or an audio' }));
}

function checkName(name: string, path: Problem['path']): void {
  const message = nameObjection(name);
  if (message !== undefined) throw invalid({ path, message });
}

function taken<T>(reading: Reading<T>, ignore: Ignore): T {
  if (reading.ok) {
    if (reading.warnings.length > 0) ignore(reading.warnings.slice(0, MAX_IGNORED).map(problemText));
    return reading.config;
  }
  const missing = reading.problems.find(({ message }) => message === 'is missing');
  if (missing !== undefined) throw kilnError('valueMissing', problemText(missing));
  throw invalid(reading.problems[0] as Problem);
}

function invalid(problem: Problem) {
  return kilnError('configInvalid', problemText(problem));
}
