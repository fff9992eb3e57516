import type { FileHandle } from 'node:fs/promises';

/** Writes bytes to a place in a file: a disk that is almost full takes parts. @throws what the system says */
export async function writeAll(file: FileHandle, data: Buffer, at: number): Promise<void> {
  for (let done = 0; done < data.length;) {
    const { bytesWritten } = await file.write(data, done, data.length - done, at + done);
    done += bytesWritten;
  }
}
