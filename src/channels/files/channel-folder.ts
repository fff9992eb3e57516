import { open, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Logger } from '../../log/log.ts';
import type { TaskName } from '../../tasks/definition.ts';
import { replaceFile } from '../../lib/files/paths.ts';
import { unless } from '../../lib/files/unless.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { Turns } from '../../lib/turns.ts';
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

/** What a file defines. */
interface FileChannel {
  readonly name: string;
  readonly spec: unknown;
}

/** The channels of an application that the files of a folder define: this node offers their tasks. */
export class ChannelFolder {
  /** Of its tasks. */
  readonly kind: string;
  readonly #path: string;
  readonly #options: ChannelFolderOptions;
  readonly #log: Logger;
  readonly #scanned: ScannedFolder;
  /** By name of the file. */
  readonly #files = new Map<string, FileChannel>();
  /** The files whose channels are offered, and what they defined then, by name of the channel. */
  readonly #offered = new Map<string, { readonly file: string; readonly channel: FileChannel }>();
  /** Files that were told to have no effect, and why. */
  readonly #told = new Map<string, string>();
  /** Deletions of channels that this node has made, by name of the channel: files that are there now are others. */
  readonly #deleted = new Map<string, number>();
  readonly #turns = new Turns(1);
  #closed = false;

  constructor(options: ChannelFolderOptions) {
    const { kind, path, application, log } = options;
    this.#path = path;
    this.kind = kind.name;
    this.#options = options;
    this.#log = log.child({ app: application.internalName });
    this.#scanned = new ScannedFolder(path, kind.extension, this.#log);
  }

  /** Takes notice of what has changed in the folder. */
  async look(): Promise<void> {
    await this.#turns.take(() => this.#look());
  }

  /**
   * Deletes the files of a channel, which ends here.
   * @param at when it was deleted, in milliseconds since the epoch
   * @returns false when there is none
   * @throws what the system says
   */
  async remove(name: string, at: number): Promise<boolean> {
    return await this.#turns.take(async () => {
      const files = this.#filesOf(name);
      for (const file of files) await this.#unlink(file);
      this.#deleted.set(name, at);
      if (files.length > 0) await this.#offer();
      return files.length > 0;
    });
  }

  /**
   * Gives the file of a channel another content.
   * @returns false when there is none
   * @throws what the system says
   */
  async rewrite(name: string, text: string): Promise<boolean> {
    return await this.#turns.take(async () => {
      const file = this.#offered.get(name)?.file;
      if (file === undefined) return false;
      await replaceFile(join(this.#path, file), (temporary) => write(temporary, text));
      await this.#look();
      return true;
    });
  }

  /** The channels are not offered any more. Idempotent. */
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

  /** Deletes files of channels that were deleted while this node was away. What was put there later stays. */
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
          'the channel was deleted through the management API: so is its file now',
        );
      } catch (error) {
        const { message: reason } = error as Error;
        this.#deleted.set(name, at);
        this.#log.error(
          { file, channel: name, reason },
          'the file of a channel that was deleted cannot be: it remains',
        );
      }
    }
  }

  /** @throws what the system says */
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

  /** Makes the offers what the files say: of several files of one channel the first counts. */
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
    for (const file of this.#told.keys()) if (!this.#files.has(file)) this.#told.delete(file);
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

  /** Why the file of a channel has no effect. @param other file that has the same channel */
  #objection(name: string, other: string | undefined): string | undefined {
    if (other !== undefined) return `${other} defines the channel ${name}, too`;
    const isStored = this.#options.tasks.definitions.stored(this.#taskName(name)) !== undefined;
    return isStored ? `a channel ${name} was created through the management API` : undefined;
  }

  #tell(file: string, objection: string | undefined): void {
    if (objection === this.#told.get(file)) return;
    if (objection === undefined) this.#told.delete(file);
    else {
      this.#told.set(file, objection);
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

/** Resolves when it is on the disk. @throws errors of the system */
async function write(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
