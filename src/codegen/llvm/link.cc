// SPDX-License-Identifier: Apache-2.0
// Objects that hold data, and the linker: LLD as a library, so that a user's machine needs no compiler.
#include <lld/Common/Driver.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/error.h"
#include "base/file.h"
#include "codegen/codegen.h"

LLD_HAS_DRIVER(elf)

namespace treadle::codegen {
namespace {

namespace elf = llvm::ELF;

uint16_t machine_of(const Target& target) {
  const llvm::Triple triple(target.triple);
  if (!triple.isOSBinFormatELF()) fail(ErrorCode::CodegenUnsupported, "data objects for {}", target.triple);
  return triple.isAArch64() ? elf::EM_AARCH64 : elf::EM_X86_64;
}

// An ELF file in the making: header, then contents at aligned offsets, then the section table.
class ElfWriter {
 public:
  explicit ElfWriter(uint16_t machine) : machine_(machine), bytes_(sizeof(elf::Elf64_Ehdr)) {
    sections_.emplace_back();
  }

  // Appends a section; its index is the number of sections before.
  elf::Elf64_Shdr& add(const char* name, uint32_t type, uint64_t flags, uint64_t align) {
    bytes_.resize((bytes_.size() + align - 1) / align * align);
    elf::Elf64_Shdr& section = sections_.emplace_back();
    std::memset(&section, 0, sizeof section);
    section.sh_name = intern(names_, name);
    section.sh_type = type;
    section.sh_flags = flags;
    section.sh_addralign = align;
    section.sh_offset = bytes_.size();
    return section;
  }
  void append(const void* data, size_t size) {
    bytes_.insert(bytes_.end(), static_cast<const char*>(data), static_cast<const char*>(data) + size);
    sections_.back().sh_size = bytes_.size() - sections_.back().sh_offset;
  }
  void align(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    sections_.back().sh_size = bytes_.size() - sections_.back().sh_offset;
  }
  uint64_t offset_in_section() const { return bytes_.size() - sections_.back().sh_offset; }
  static uint32_t intern(std::string& table, const std::string& name) {
    if (table.empty()) table.push_back('\0');
    const auto offset = static_cast<uint32_t>(table.size());
    table.append(name).push_back('\0');
    return offset;
  }
  Bytes finish() {
    add(".shstrtab", elf::SHT_STRTAB, 0, 1);
    append(names_.data(), names_.size());
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    elf::Elf64_Ehdr header;
    std::memset(&header, 0, sizeof header);
    std::memcpy(header.e_ident, elf::ElfMagic, 4);
    header.e_ident[elf::EI_CLASS] = elf::ELFCLASS64;
    header.e_ident[elf::EI_DATA] = elf::ELFDATA2LSB;
    header.e_ident[elf::EI_VERSION] = elf::EV_CURRENT;
    header.e_type = elf::ET_REL;
    header.e_machine = machine_;
    header.e_version = elf::EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_shoff = bytes_.size();
    header.e_shentsize = sizeof(elf::Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    header.e_shstrndx = static_cast<uint16_t>(sections_.size() - 1);
    std::memset(&sections_[0], 0, sizeof sections_[0]);
    const auto* table = reinterpret_cast<const char*>(sections_.data());
    bytes_.insert(bytes_.end(), table, table + sections_.size() * sizeof(elf::Elf64_Shdr));
    std::memcpy(bytes_.data(), &header, sizeof header);
    return std::move(bytes_);
  }

 private:
  uint16_t machine_;
  Bytes bytes_;
  std::vector<elf::Elf64_Shdr> sections_;
  std::string names_;
};

// A folder that only this user can read, removed at the end.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "treadle-link-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      fail(ErrorCode::Io, "cannot make a folder like {}: {}", pattern, std::strerror(errno));
    path_ = pattern;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const char* data, size_t size) const {
    std::ofstream stream(file(name), std::ios::binary);
    if (!stream.write(data, static_cast<std::streamsize>(size)) || !stream.flush())
      fail(ErrorCode::Io, "cannot write {}", file(name));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

Bytes emit_data_object(const std::vector<std::pair<std::string, std::string_view>>& symbols, const Target& target) {
  ElfWriter writer(machine_of(target));
  writer.add(".rodata", elf::SHT_PROGBITS, elf::SHF_ALLOC, 64);
  std::string names;
  std::vector<elf::Elf64_Sym> table(1);
  std::memset(table.data(), 0, sizeof(elf::Elf64_Sym));
  const auto define = [&](const std::string& name, const void* data, size_t size, size_t alignment) {
    writer.align(alignment);
    elf::Elf64_Sym symbol;
    std::memset(&symbol, 0, sizeof symbol);
    symbol.st_name = ElfWriter::intern(names, name);
    symbol.setBindingAndType(elf::STB_GLOBAL, elf::STT_OBJECT);
    symbol.st_shndx = 1;
    symbol.st_value = writer.offset_in_section();
    symbol.st_size = size;
    table.push_back(symbol);
    writer.append(data, size);
  };
  for (const auto& [name, bytes] : symbols) {
    const uint64_t size = bytes.size();
    define(name, bytes.data(), bytes.size(), 64);
    define(name + "_size", &size, sizeof size, 8);
  }
  writer.add(".note.GNU-stack", elf::SHT_PROGBITS, 0, 1);
  elf::Elf64_Shdr& symbol_section = writer.add(".symtab", elf::SHT_SYMTAB, 0, 8);
  symbol_section.sh_link = 4;  // .strtab, the next section
  symbol_section.sh_info = 1;  // the first global symbol
  symbol_section.sh_entsize = sizeof(elf::Elf64_Sym);
  writer.append(table.data(), table.size() * sizeof(elf::Elf64_Sym));
  writer.add(".strtab", elf::SHT_STRTAB, 0, 1);
  if (names.empty()) names.push_back('\0');
  writer.append(names.data(), names.size());
  return writer.finish();
}

Bytes link_shared(const std::vector<Bytes>& objects, const std::vector<std::string>& exported, const Target& target) {
  machine_of(target);
  const PrivateFolder folder;
  std::vector<std::string> args{"ld.lld",
                                "-shared",
                                "--no-undefined",
                                "--build-id=none",
                                "--hash-style=gnu",
                                "--threads=1",
                                "-z",
                                "noexecstack",
                                "-z",
                                "relro",
                                "-z",
                                "now",
                                "--gc-sections",
                                "-o",
                                folder.file("out.so")};
  std::string script = "{ global: ";
  for (const std::string& name : exported) {
    script += name + "; ";
    args.push_back("--undefined=" + name);
  }
  script += "local: *; };\n";
  folder.write("exports", script.data(), script.size());
  args.push_back("--version-script=" + folder.file("exports"));
  for (size_t i = 0; i < objects.size(); ++i) {
    const std::string name = fmt::format("{}.o", i);
    folder.write(name, objects[i].data(), objects[i].size());
    args.push_back(folder.file(name));
  }
  std::vector<const char*> arguments;
  for (const std::string& arg : args) arguments.push_back(arg.c_str());
  std::string output, errors;
  static std::mutex mutex;  // LLD keeps its state in globals
  static bool broken = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (broken) fail(ErrorCode::Internal, "the linker failed before in this process and cannot run again");
    llvm::raw_string_ostream output_stream(output), error_stream(errors);
    const lld::DriverDef driver{lld::Gnu, &lld::elf::link};
    const lld::Result result = lld::lldMain(arguments, output_stream, error_stream, driver);
    broken = !result.canRunAgain;
    if (result.retCode != 0)
      fail(ErrorCode::CodegenUnsupported, "linking failed: {}", errors.empty() ? output : errors);
  }
  const std::string bytes = read_file(folder.file("out.so"));
  if (bytes.empty()) fail(ErrorCode::Io, "the linker wrote nothing");
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace treadle::codegen
