import { unlink } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ApplicationConfig } from '../../config/model.ts';
import { askControlServer } from '../../control-server/control-server.ts';
import type { Logger } from '../../log/log.ts';
import { pause } from '../../lib/pause.ts';
import type { FinishedFile } from '../journal.ts';
import { JsonFolder } from '../../lib/files/json-folder.ts';
import { expandPath } from '../macros.ts';
import type { Upload } from '../finished/entry.ts';
import type { Buckets } from './buckets.ts';
import { announcement, Job, subtitlesPath } from './job.ts';
import { Lane } from './lane.ts';
import { objectUrl } from './object-url.ts';

export type DeliverySettings = NonNullable<NonNullable<ApplicationConfig['publishers']['file']>['record']>;

export interface DeliveriesOptions {
  /** Folder of this node alone for pending deliveries. */
  readonly folder: string;
  /** Name of this node in announcements. */
  readonly node: string;
  /** Present settings of an application; undefined as long as it does not exist. */
  readonly settingsOf: (vhost: string, app: string) => DeliverySettings | undefined;
  /**
   * Called when an upload has ended, before that is remembered.
   * @param temporary name of the file until it was finished
   * @param isLocal whether the file was not deleted
   * @throws errors of the system: the job is tried again
   */
  readonly onUpload?: (job: Job, temporary: string, upload: Upload, isLocal: boolean) => Promise<void>;
  readonly buckets: Pick<Buckets, 'upload'>;
  readonly log: Logger;
}

/** Concurrent jobs of one application. */
const MOST = 4;
/** An announcement is dropped after failing this long. */
const ANNOUNCED_WITHIN_MS = 3 * 24 * 3600_000;
/** Time for pending announcements when the node stops. */
const PARTING_MS = 3000;

type Step = Job['step'];

/**
 * Announces and uploads finished recordings until that succeeds: across restarts, at least once, and without delaying
 * recordings. Jobs are kept in a folder; each application has one lane for announcements and one for uploads.
 */
export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #log: Logger;
  readonly #jobs: JsonFolder<typeof Job>;
  readonly #lanes = new Map<string, { readonly step: Step; readonly lane: Lane }>();
  readonly #stop = new AbortController();
  /** Names of waiting and running jobs. */
  readonly #known = new Set<string>();
  /** Last logged reason of each lane. */
  readonly #reasons = new Map<string, string>();
  #loading: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'delivery' });
    this.#jobs = new JsonFolder(options.folder, Job);
  }

  /** Accepts a finished file; its job outlives this process. @throws errors of the disk */
  readonly deliver = async (finished: FinishedFile): Promise<void> => {
    const {
      temporary,
      delivery,
      root: _,
      file: __,
      info: ___,
      finished: ____,
      folder: _____,
      tracks: ______,
      labels: _______,
      ...rest
    } = finished;
    const { subtitles, ...others } = rest;
    const file = { ...others, since: Date.now(), ...(subtitles !== undefined && { subtitles: [...subtitles] }) };
    const id = idOf(temporary);
    if (delivery?.announced === true) await this.#keep(`${id}-finished`, { ...file, step: 'announce' });
    if (delivery?.uploaded === true) await this.#keep(`${id}${UPLOADED}`, { ...file, step: 'upload' });
  };

  /** Whether a file waits for its upload, or is being uploaded. @param temporary its name until it was finished */
  async isUploading(temporary: string): Promise<boolean> {
    const job = await this.#read(`${idOf(temporary)}${UPLOADED}`);
    return job?.step === 'upload';
  }

  /** Resumes the jobs of an earlier run, and begins to deliver. Call it when the applications exist. */
  start(): void {
    this.#loading ??= this.#load();
  }

  /** Waits a moment for announcements, and leaves the rest to the next run. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #load(): Promise<void> {
    try {
      for (const name of await this.#jobs.names()) {
        if (this.#stop.signal.aborted) break;
        const job = await this.#read(name);
        if (job !== undefined) this.#queue(name, job);
      }
    } catch (error) {
      const reason = (error as Error).message;
      this.#log.error(
        { event: 'delivery.failed', reason },
        'the recordings that an earlier run has left are not delivered',
      );
    }
  }

  async #close(): Promise<void> {
    const parting = Date.now() + PARTING_MS;
    const isBusy = (): boolean =>
      [...this.#lanes.values()].some(({ step, lane }) => step === 'announce' && !lane.isFailing && lane.size > 0);
    while (isBusy() && Date.now() < parting) await pause(20, this.#stop.signal);
    const lanes = [...this.#lanes.values()].map(({ lane }) => lane.close());
    this.#stop.abort();
    await Promise.all([...lanes, this.#loading]);
  }

  async #keep(name: string, job: Job): Promise<void> {
    await this.#jobs.put(name, job, true);
    if (this.#loading !== undefined) this.#queue(name, job);
  }

  #queue(name: string, { step, vhost, app }: Job): void {
    if (this.#known.has(name) || this.#stop.signal.aborted) return;
    this.#known.add(name);
    const application = `${vhost}/${app}`;
    const key = `${step} ${application}`;
    const known = this.#lanes.get(key);
    if (known !== undefined) return known.lane.add(name);
    const lane: Lane = new Lane({
      most: MOST,
      run: (job) => this.#run(job),
      onFailure: ({ message: reason }, waiting) => {
        if (this.#reasons.get(key) === reason) return;
        this.#reasons.set(key, reason);
        this.#log.warn(
          { event: 'delivery.failed', application, step, reason, waiting },
          `finished recordings cannot be ${PAST[step]}: they wait, and it is tried again`,
        );
      },
      onRecovery: (failures) => {
        this.#reasons.delete(key);
        this.#log.info(
          { event: 'delivery.resumed', application, step, failures, waiting: lane.size },
          `finished recordings are ${PAST[step]} again`,
        );
      },
      onEmpty: () => this.#lanes.delete(key),
    });
    this.#lanes.set(key, { step, lane });
    lane.add(name);
  }

  async #run(name: string): Promise<void> {
    const job = await this.#read(name);
    const next = job && (await (job.step === 'announce' ? this.#announce(name, job) : this.#upload(name, job)));
    this.#known.delete(name);
    if (next !== undefined) this.#queue(name, next);
  }

  /** @throws Error for a job that is tried again */
  async #announce(name: string, job: Job): Promise<undefined> {
    try {
      const { webhook } = this.#settings(job);
      if (webhook === undefined) return await this.#drop(name, job, 'the application has no Webhook any more');
      const { controlServerUrl: url, secretKey, timeout } = webhook;
      const body = announcement(name, job, this.#options.node);
      const { status } = await askControlServer({ url, secretKey, timeout }, body, this.#stop.signal);
      if (status < 200 || status >= 300) throw new Error(`the webhook answered with status ${status}`);
    } catch (error) {
      if (Date.now() - job.since < ANNOUNCED_WITHIN_MS) throw error;
      return await this.#drop(name, job, `after three days, ${(error as Error).message}`);
    }
    await this.#jobs.remove(name);
  }

  /** @returns the next step @throws Error for a job that is tried again */
  async #upload(name: string, job: Job): Promise<Job | undefined> {
    const { webhook, upload } = this.#settings(job);
    if (upload === undefined) return await this.#drop(name, job, 'the application has no Upload any more');
    const done =
      job.uploaded === undefined ? await this.#store(name, await this.#storeSubtitles(name, job, upload), upload) : job;
    if (done === undefined) return await this.#drop(name, job, 'the file is gone');
    const isLocal = !upload.deleteLocal || !(await this.#delete(job.filePath, done.uploaded?.verified === true));
    if (!isLocal) {
      for (const { name: file, verified = false } of done.subtitles ?? [])
        await this.#delete(subtitlesPath(done.filePath, file), verified);
    }
    const { bucket = upload.bucket, key = '', etag = '' } = done.uploaded ?? {};
    const url = objectUrl({ ...upload, bucket }, key);
    await this.#tell(name, job, { state: 'uploaded', bucket, key, url, ...(etag !== '' && { etag }) }, isLocal);
    if (webhook === undefined) {
      await this.#jobs.remove(name);
      return undefined;
    }
    const next: Job = { ...done, step: 'announce', since: Date.now() };
    await this.#jobs.put(name, next, true);
    return next;
  }

  /** @returns undefined when the file is gone */
  async #store(name: string, job: Job, settings: NonNullable<DeliverySettings['upload']>): Promise<Job | undefined> {
    const { progress, ...rest } = job;
    const { filePath: file } = job;
    const task = { id: name, path: file, key: keyOf(job, settings.prefix), progress };
    const result = await this.#options.buckets.upload(task, settings, this.#stop.signal, (now) => {
      const kept = now === undefined ? rest : { ...rest, progress: now };
      // without it a restart would upload parts again
      this.#jobs.put(name, kept, true).catch(({ message: reason }: Error) => {
        this.#log.warn({ event: 'delivery.failed', file, reason }, 'the state of an upload could not be kept');
      });
    });
    if (result === undefined) return undefined;
    const { bucket } = settings;
    const { key } = result;
    const done = { ...rest, uploaded: { bucket, ...result } };
    // must be stored before the file may be deleted
    await this.#jobs.put(name, done, true);
    this.#log.info({ event: 'record.uploaded', file, bucket, key, bytes: job.recordBytes }, 'the file is uploaded');
    return done;
  }

  /** Uploads the subtitles of a file. @returns the job with their keys: it is kept with each of them */
  async #storeSubtitles(name: string, job: Job, settings: NonNullable<DeliverySettings['upload']>): Promise<Job> {
    if (job.subtitles === undefined) return job;
    let { subtitles } = job;
    for (const [index, one] of job.subtitles.entries()) {
      if (one.key !== undefined) continue;
      const path = subtitlesPath(job.filePath, one.name);
      const key = keyOf({ ...job, pathBelow: subtitlesPath(job.pathBelow, one.name) }, settings.prefix);
      const task = { id: `${name}-${index}`, path, key, progress: undefined };
      const result = await this.#options.buckets.upload(task, settings, this.#stop.signal, () => undefined);
      // it is gone
      if (result === undefined) continue;
      const stored = { ...one, key: result.key, verified: result.verified };
      subtitles = subtitles.with(index, stored);
      await this.#jobs.put(name, { ...job, subtitles }, true);
    }
    return { ...job, subtitles };
  }

  /** @throws Error where there are none */
  #settings({ vhost, app }: Job): DeliverySettings {
    const settings = this.#options.settingsOf(vhost, app);
    if (settings === undefined) throw new Error('there is no such application at present');
    return settings;
  }

  /** @returns whether the file is gone */
  async #delete(file: string, verified: boolean): Promise<boolean> {
    if (!verified) {
      this.#log.warn({ file }, 'a recording stays after its upload: the storage has not confirmed its checksum');
      return false;
    }
    try {
      await unlink(file);
    } catch (error) {
      const { code, message: reason } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return true;
      this.#log.warn({ file, reason }, 'a recording stays after its upload: it cannot be deleted');
      return false;
    }
    return true;
  }

  async #tell(name: string, job: Job, upload: Upload, isLocal: boolean): Promise<void> {
    await this.#options.onUpload?.(job, `tmp_${name.slice(0, -UPLOADED.length)}`, upload, isLocal);
  }

  async #drop(name: string, job: Job, reason: string): Promise<undefined> {
    const { filePath: file, step } = job;
    if (step === 'upload') await this.#tell(name, job, { state: 'failed' }, true);
    this.#log.error({ event: 'delivery.given-up', file, step, reason }, `a finished recording is not ${PAST[step]}`);
    await this.#jobs.remove(name);
  }

  /** undefined for a job that is missing, or unreadable, which is logged. */
  async #read(name: string): Promise<Job | undefined> {
    try {
      return await this.#jobs.read(name);
    } catch (error) {
      const reason = (error as Error).message;
      this.#log.error({ event: 'delivery.given-up', job: name, reason }, 'a finished recording cannot be delivered');
      return undefined;
    }
  }
}

const UPLOADED = '-uploaded';

/** @param temporary path, or name, of the file until it was finished */
function idOf(temporary: string): string {
  return basename(temporary).replace(/^tmp_/, '');
}

const PAST: Readonly<Record<Step, string>> = { announce: 'announced', upload: 'uploaded' };

/** Object key: prefix and path below the root. */
function keyOf(job: Job, prefix: string): string {
  const values = { ...job, start: new Date(job.startTime), end: new Date(job.finishTime) };
  return `${expandPath(prefix, values)}${job.pathBelow}`.replace(/^\/+/, '');
}
