"""All access to files: local files, and files in stores such as gs://, s3:// and memory://."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["hub", "places", "reading", "writing"],
    submod_attrs={
        "hub": ["dataset_commit", "in_card", "local_copy"],
        "places": ["FLAGFILE", "PATH_FLAGS", "TOKENIZER_ENDING", "absolute", "check_decodable",
                   "check_stores", "exists", "fetched", "file_size", "files_under", "find_files",
                   "identity", "is_file", "is_folder", "is_hub_name", "is_library_name",
                   "is_remote", "is_taken", "join_path", "list_folder", "make_folders",
                   "match_names", "name_of_copies", "normal_path", "real_path", "relative",
                   "remove_file", "remove_folder", "same_file", "snapshot_of", "stage_folder",
                   "with_whole_names"],
        "reading": ["READ_ERRORS", "READ_FLAGS", "STANDARD", "TABLES", "as_file", "check_input",
                    "digest", "ending", "is_gzip", "is_packed", "is_pipe", "open_file",
                    "open_unpacked", "parse_json", "read_json", "read_range", "shown_name",
                    "staged", "tensorflow_name", "unpacked_name", "unpacked_range",
                    "unpacked_size", "warn_of_tables"],
        "writing": ["ASIDE", "Held", "announce_replacing", "check_file", "check_free", "checked",
                    "copy_file", "folder_aside", "is_unfinished", "leftovers", "locked",
                    "make_folder", "open_log", "remove_leftovers", "replace_aside",
                    "send_folder", "unfinished", "write_aside", "write_json"],
    })
