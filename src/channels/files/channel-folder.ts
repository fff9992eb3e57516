import { open, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Logger } from '../../log/log.ts';
import type { TaskName } from '../../tasks/definition.ts';
import { replaceFile } from '../../lib/files/paths.ts';
import { unless } from '../../lib/files/unless.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { Limiter } from '../../lib/limiter.ts';
import type { ChannelDeletions } from './deletions.ts';
import type { ChannelFileKind } from './kinds.ts';
import { readChannelFile } from './read-file.ts';
import { ScannedFolder } from './scanned-folder.ts';

export interface ChannelFolderOptions {
  readonly application: Application;
  readonly kind: ChannelFileKind;
  readonly path: string;
  readonly tasks: Pick<Tasks, 'definitions' | 'offer' | 'withdraw'>;
  readonly deletions: Pick<ChannelDeletions, 'at'>;
  readonly log: Logger;
}

interface FileChannel {
  readonly name: string;
  readonly spec: unknown;
}

/** The channels of an application that the files of one folder define. This node offers their tasks. */
export class ChannelFolder {
  readonly kind: string;
  readonly #path: string;
  readonly #options: ChannelFolderOptions;
  readonly #log: Logger;
  readonly #scanned: ScannedFolder;
  /** By file name. */
  readonly #files = new Map<string, FileChannel>();
  /** Offered channels with their file and its definition at that time, by channel name. */
  readonly #offered = new Map<string, { readonly file: string; readonly channel: FileChannel }>();
  /** Ignored files whose reason is logged, with that reason. */
  readonly #reported = new Map<string, string>();
  /** Times of deletions that this node carried out, by channel name: files that appear later are new ones. */
  readonly #deleted = new Map<string, number>();
  readonly #mutex = new Limiter(1);
  #closed = false;

  constructor(options: ChannelFolderOptions) {
    const { kind, path, application, log } = options;
    this.#path = path;
    this.kind = kind.name;
    this.#options = options;
    this.#log = log.child({ app: application.internalName });
    this.#scanned = new ScannedFolder(path, kind.extension, this.#log);
  }

  /** Scans the folder and offers, changes or withdraws its channels. */
  async look(): Promise<void> {
    await this.#mutex.run(() => this.#look());
  }

  /**
   * Deletes the files of a channel, whose run on this node ends.
   * @param at time of the deletion, in milliseconds since the epoch
   * @returns false when there is none
   * @throws errors of the system
   */
  async remove(name: string, at: number): Promise<boolean> {
    return await this.#mutex.run(async () => {
      const files = this.#filesOf(name);
      for (const file of files) await this.#unlink(file);
      this.#deleted.set(name, at);
      if (files.length > 0) await this.#offer();
      return files.length > 0;
    });
  }

  /** Rewrites the file of a channel. @returns false when there is none @throws errors of the system */
  async rewrite(name: string, text: string): Promise<boolean> {
    return await this.#mutex.run(async () => {
      const file = this.#offered.get(name)?.file;
      if (file === undefined) return false;
      await replaceFile(join(this.#path, file), (temporary) => write(temporary, text));
      await this.#look();
      return true;
    });
  }

  /** Withdraws the offers. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#offered.keys(), (id) => this.#withdraw(id)));
  }

  async #look(): Promise<void> {
    if (this.#closed) return;
    for (const { file, bytes } of await this.#scanned.look()) {
      if (bytes === undefined) {
        this.#log.info({ file }, 'the channel file was deleted');
        this.#files.delete(file);
      } else this.#read(file, bytes);
    }
    await this.#deleteLeft();
    await this.#offer();
  }

  /** Deletes files of channels that were deleted while this node was away, unless a file was put there later. */
  async #deleteLeft(): Promise<void> {
    const { deletions } = this.#options;
    for (const [file, { name }] of [...this.#files]) {
      const at = deletions.at(this.#taskName(name));
      if (at === undefined || this.#deleted.get(name) === at) continue;
      try {
        const found = await stat(join(this.#path, file)).catch(unless('ENOENT'));
        if (found === undefined || found.ctimeMs >= at) continue;
        await this.#unlink(file);
        this.#log.warn(
          { file, channel: name },
          'the file of a channel that was deleted through the management API is deleted',
        );
      } catch (error) {
        const { message: reason } = error as Error;
        this.#deleted.set(name, at);
        this.#log.error({ file, channel: name, reason }, 'the file of a deleted channel could not be deleted');
      }
    }
  }

  /** @throws errors of the system */
  async #unlink(file: string): Promise<void> {
    await unlink(join(this.#path, file)).catch(unless('ENOENT'));
    this.#scanned.forget(file);
    this.#files.delete(file);
  }

  #read(file: string, bytes: Buffer): void {
    const { kind } = this.#options;
    const fallbackName = file.slice(0, -kind.extension.length);
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
      const { value, warnings } = readChannelFile(kind.form, text, join(this.#path, file), fallbackName);
      this.#files.set(file, value);
      this.#log.info({ file, channel: value.name }, 'the channel file was read');
      for (const warning of warnings) this.#log.warn({ file }, warning);
    } catch (error) {
      const { message: reason } = error as Error;
      const text = this.#files.has(file)
        ? 'the channel file is not valid: its previous content remains in use'
        : 'the channel file is not valid: it has no effect';
      this.#log.warn({ file, reason }, text);
    }
  }

  /** Makes the offers match the files. Of several files for one channel the first counts. */
  async #offer(): Promise<void> {
    if (this.#closed) return;
    const { kind, tasks } = this.#options;
    const wanted = new Map<string, string>();
    for (const file of [...this.#files.keys()].sort()) {
      const { name } = this.#files.get(file) as FileChannel;
      const other = wanted.get(name);
      if (other === undefined) wanted.set(name, file);
      this.#tell(file, this.#objection(name, other));
    }
    for (const file of this.#reported.keys()) if (!this.#files.has(file)) this.#reported.delete(file);
    const gone = [...this.#offered.keys()].filter((name) => !wanted.has(name));
    await Promise.all(gone.map((name) => this.#withdraw(name)));
    for (const [name, file] of wanted) {
      const channel = this.#files.get(file) as FileChannel;
      if (this.#offered.get(name)?.channel === channel || this.#closed) continue;
      this.#offered.set(name, { file, channel });
      tasks.offer(this.#taskName(name), channel.spec as Json, kind.version(channel.spec));
    }
  }

  async #withdraw(name: string): Promise<void> {
    this.#offered.delete(name);
    await this.#options.tasks.withdraw(this.#taskName(name));
  }

  /** Why the file of a channel is ignored. @param other file that defines the same channel */
  #objection(name: string, other: string | undefined): string | undefined {
    if (other !== undefined) return `${other} defines the channel ${name}, too`;
    const isStored = this.#options.tasks.definitions.stored(this.#taskName(name)) !== undefined;
    return isStored ? `a channel ${name} was created through the management API` : undefined;
  }

  #tell(file: string, objection: string | undefined): void {
    if (objection === this.#reported.get(file)) return;
    if (objection === undefined) this.#reported.delete(file);
    else {
      this.#reported.set(file, objection);
      this.#log.warn({ file, reason: objection }, 'the channel file has no effect');
    }
  }

  #filesOf(name: string): string[] {
    return [...this.#files].flatMap(([file, channel]) => (channel.name === name ? [file] : []));
  }

  #taskName(id: string): TaskName {
    const { kind, application } = this.#options;
    return { kind: kind.name, vhost: application.vhost.name, app: application.name, id };
  }
}

/** Resolves when the text is on disk. @throws errors of the system */
async function write(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
